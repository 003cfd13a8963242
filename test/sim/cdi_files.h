// The CDI files of the real driver, for programs that read CDI files.
#ifndef ASCEND_DRA_TEST_SIM_CDI_FILES_H_
#define ASCEND_DRA_TEST_SIM_CDI_FILES_H_

#include <string>

#include "test/sim/driver_stack.h"

namespace ascend::sim {

// Starts the driver, prepares a claim for one device and, if the node has more, one for all the
// others, and copies the CDI files that the driver wrote into `directory`, which must exist. Takes
// root, as claims are not prepared without device nodes. Returns the exit code; after a failure the
// logs of the driver have been printed.
int WriteCdiFiles(const StackOptions& options, const std::string& directory);

}  // namespace ascend::sim

#endif  // ASCEND_DRA_TEST_SIM_CDI_FILES_H_

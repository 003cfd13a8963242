// Changes an OCI configuration as edits say. Not for users of the library: see injector.h.
//
// Every function takes a configuration that passed CheckOciConfig and edits that passed
// ValidateEdits, and then cannot fail. `edits` are the sets to apply, as if they were one.
#ifndef ASCEND_DRA_CDI_APPLY_EDITS_H_
#define ASCEND_DRA_CDI_APPLY_EDITS_H_

#include <vector>

#include "cdi/host_device.h"
#include "cdi/injector.h"
#include "cdi/spec.h"

namespace ascend::cdi {

using EditList = std::vector<const ContainerEdits*>;

void ApplyEnv(const EditList& edits, const InjectionCompatibility& compatibility,
              OciConfig& config);
void ApplyDeviceNodes(const std::vector<CompleteNode>& nodes, OciConfig& config);
void ApplyNetDevices(const EditList& edits, OciConfig& config);
void ApplyMounts(const EditList& edits, const InjectionCompatibility& compatibility,
                 OciConfig& config);
void ApplyHooks(const EditList& edits, OciConfig& config);
void ApplyIntelRdt(const EditList& edits, OciConfig& config);
void ApplyAdditionalGids(const EditList& edits, OciConfig& config);

}  // namespace ascend::cdi

#endif  // ASCEND_DRA_CDI_APPLY_EDITS_H_

// Declares every name of the ABI as an exported function, so that a definition with another
// signature does not compile.
#ifndef ASCEND_DRA_VNPU_DCMI_MOCK_EXPORTS_H_
#define ASCEND_DRA_VNPU_DCMI_MOCK_EXPORTS_H_

#include "vnpu/dcmi/abi.h"

#define ASCEND_MOCK_EXPORT extern "C" __attribute__((visibility("default")))

#define ASCEND_MOCK_DECLARE(name, parameters) ASCEND_MOCK_EXPORT int name parameters;
ASCEND_DCMI_V1_FUNCTIONS(ASCEND_MOCK_DECLARE)
ASCEND_DCMI_V2_FUNCTIONS(ASCEND_MOCK_DECLARE)
#undef ASCEND_MOCK_DECLARE

#define ASCEND_MOCK_DECLARE(name) ASCEND_MOCK_EXPORT int name(void);
ASCEND_DCMI_UNTYPED_FUNCTIONS(ASCEND_MOCK_DECLARE)
#undef ASCEND_MOCK_DECLARE

#endif  // ASCEND_DRA_VNPU_DCMI_MOCK_EXPORTS_H_

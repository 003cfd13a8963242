// The calls about vNPUs, apart from their names.
#ifndef ASCEND_DRA_VNPU_DCMI_MOCK_VNPU_CALLS_H_
#define ASCEND_DRA_VNPU_DCMI_MOCK_VNPU_CALLS_H_

#include "vnpu/dcmi/abi.h"
#include "vnpu/dcmi/mock/runtime.h"

namespace ascend::dcmi::mock {

int CreateVnpu(const View& view, const Chip& chip, const dcmi_create_vdev_res_stru* wanted,
               dcmi_create_vdev_out* out);
int DestroyVnpu(const View& view, const Chip& chip, unsigned id);

// Sub-commands of DCMI_CMD_VDEV_MNG.
int GetVnpuInfo(const View& view, const Chip& chip, unsigned sub_command, void* buffer,
                unsigned* size);

int GetVdeviceMode(const View& view, int* mode);
int SetVdeviceMode(const View& view, int mode);
int GetVnpuRecovery(const View& view, unsigned* mode);
int SetVnpuRecovery(const View& view, unsigned mode);

}  // namespace ascend::dcmi::mock

#endif  // ASCEND_DRA_VNPU_DCMI_MOCK_VNPU_CALLS_H_

// The answers about a chip that its faults and resets decide, and the calls that reset it. Each
// returns a code of abi.h; exceptions as in fault_state.h.
#ifndef ASCEND_DRA_VNPU_DCMI_MOCK_FAULT_CALLS_H_
#define ASCEND_DRA_VNPU_DCMI_MOCK_FAULT_CALLS_H_

#include <string>

#include "vnpu/dcmi/abi.h"
#include "vnpu/dcmi/mock/runtime.h"

namespace ascend::dcmi::mock {

// False: the chip is in a reset or has dropped, and the function needs it.
bool Answers(const View& view, const std::string& function, const Chip& chip);

int GetHealth(const View& view, const Chip& chip, unsigned* health);
int GetErrorCodes(const View& view, const Chip& chip, int* count, unsigned* list,
                  unsigned list_len);
std::string FaultText(const View& view, unsigned code);
int GetBootStatus(const View& view, const Chip& chip, dcmi_boot_status* status);

// Out of band a reset takes PrepareReset() before and Rescan() after; else -8015, and a chip that
// does not start. -8013: a chip of the group has processes or a busy vNPU.
int ResetChip(const View& view, const Chip& chip, dcmi_reset_channel channel);
int PrepareReset(const View& view, const Chip& chip);
int Rescan(const View& view, const Chip& chip);

}  // namespace ascend::dcmi::mock

#endif  // ASCEND_DRA_VNPU_DCMI_MOCK_FAULT_CALLS_H_

// The library's fault events: callbacks on a thread of the library, as the node's events.jsonl
// grows.
#ifndef ASCEND_DRA_VNPU_DCMI_MOCK_FAULT_EVENTS_H_
#define ASCEND_DRA_VNPU_DCMI_MOCK_FAULT_EVENTS_H_

#include "vnpu/dcmi/abi.h"
#include "vnpu/dcmi/mock/runtime.h"

namespace ascend::dcmi::mock {

// Once per process; then -8020. `chip` null is every one. No history: what comes after this
// returns. Costs nothing while nothing happens. -8255 on 310.
int SubscribeFaults(const View& view, const Chip* chip, const dcmi_event_filter& filter,
                    dcmi_fault_event_callback handler);

}  // namespace ascend::dcmi::mock

#endif  // ASCEND_DRA_VNPU_DCMI_MOCK_FAULT_EVENTS_H_

// The one place that knows how an inventory and the processes on chips travel.
#ifndef ASCEND_DRA_VNPU_AGENT_CONVERT_H_
#define ASCEND_DRA_VNPU_AGENT_CONVERT_H_

#include "agent.pb.h"
#include "vnpu/chip.h"

namespace ascend::agent {

v1alpha1::Inventory ToProto(const vnpu::Inventory& inventory);
// Tolerant: unknown enumeration names become kUnknown (library state: kFailed).
vnpu::Inventory FromProto(const v1alpha1::Inventory& message);

v1alpha1::Vnpu ToProto(const vnpu::Vnpu& vnpu);
// Resources of unknown names are left out.
vnpu::Vnpu FromProto(const v1alpha1::Vnpu& message);

v1alpha1::ChipProcesses ToProto(const vnpu::ChipProcesses& chip);
vnpu::ChipProcesses FromProto(const v1alpha1::ChipProcesses& message);

}  // namespace ascend::agent

#endif  // ASCEND_DRA_VNPU_AGENT_CONVERT_H_

#include "kubeletplugin/health/device_verdict.h"

#include <tuple>

namespace ascend::kubeletplugin {

bool IsWorse(const vnpu::Verdict& a, const vnpu::Verdict& b) {
  return std::tie(a.effect, a.state, a.level) > std::tie(b.effect, b.state, b.level);
}

const vnpu::Verdict& VerdictOn(const std::vector<int>& physical_ids, const ChipVerdicts& verdicts) {
  static const auto& unknown = *new vnpu::Verdict{.physical_id = -1,
                                                  .uuid = "",
                                                  .level = vnpu::HealthLevel::kUnknown,
                                                  .effect = vnpu::TaintEffect::kNoSchedule,
                                                  .state = vnpu::HealthState::kUnknown,
                                                  .message = "unknown: nothing is known of it yet",
                                                  .since = absl::Time(),
                                                  .causes = {}};
  const vnpu::Verdict* worst = nullptr;
  for (const int id : physical_ids) {
    const auto known = verdicts.find(id);
    const vnpu::Verdict& verdict = known == verdicts.end() ? unknown : known->second;
    if (worst == nullptr || IsWorse(verdict, *worst)) worst = &verdict;
  }
  return worst == nullptr ? unknown : *worst;
}

}  // namespace ascend::kubeletplugin

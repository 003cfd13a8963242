#include "vnpu/dcmi/mock/vnpu_rules.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "vnpu/dcmi/abi.h"
#include "vnpu/dcmi/mock/json_object.h"

namespace ascend::dcmi::mock {
namespace {

constexpr std::pair<const char*, double VnpuAmounts::*> kResources[] = {
    {"aicore", &VnpuAmounts::aicore}, {"aicpu", &VnpuAmounts::aicpu},
    {"memory", &VnpuAmounts::memory}, {"vpc", &VnpuAmounts::vpc},
    {"venc", &VnpuAmounts::venc},     {"vdec", &VnpuAmounts::vdec},
    {"jpegd", &VnpuAmounts::jpegd},   {"jpege", &VnpuAmounts::jpege},
    {"pngd", &VnpuAmounts::pngd}};

// The library's field for the name, with its end.
constexpr size_t kLongestTemplateName = sizeof(dcmi_vdev_query_info::name) - 1;
constexpr int kIdsPerChip = 16;
constexpr int kFirstId = 100;

double VnpuAmounts::* ResourceOf(const std::string& name) {
  for (const auto& [candidate, member] : kResources) {
    if (name == candidate) return member;
  }
  return nullptr;
}

std::vector<std::pair<std::string, double>> GetAmounts(Object& object) {
  std::vector<std::pair<std::string, double>> amounts;
  for (const auto& [name, member] : kResources) {
    std::optional<double> value;
    object.Get(name, &value);
    if (!value.has_value()) continue;
    if (*value < 0) object.Fail(std::string("needs 0 or more for ") + name);
    amounts.emplace_back(name, *value);
  }
  return amounts;
}

VnpuAmounts ToAmounts(const std::vector<std::pair<std::string, double>>& named) {
  VnpuAmounts amounts;
  for (const auto& [name, value] : named) amounts.*ResourceOf(name) = value;
  return amounts;
}

VnpuTemplate ParseTemplate(Object object) {
  VnpuTemplate result;
  object.Get("name", &result.name);
  if (result.name.empty() || result.name.size() > kLongestTemplateName) {
    object.Fail("needs a name of 1 to " + std::to_string(kLongestTemplateName) + " characters");
  }
  result.amounts = ToAmounts(GetAmounts(object));
  object.Finish();
  return result;
}

std::vector<const Vnpu*> OfChip(int physical_id, const std::vector<Vnpu>& existing) {
  std::vector<const Vnpu*> result;
  for (const Vnpu& vnpu : existing) {
    if (vnpu.physical_id == physical_id) result.push_back(&vnpu);
  }
  return result;
}

bool Fits(const VnpuRules& rules, const VnpuAmounts& used, const VnpuAmounts& more) {
  return std::all_of(rules.budget.begin(), rules.budget.end(), [&](const auto& entry) {
    const auto member = ResourceOf(entry.first);
    // Amounts are multiples of 1/2 or so; do not stumble over the last bit.
    return used.*member + more.*member <= entry.second + 1e-6;
  });
}

double AicoreOf(const VnpuRules& rules, const Vnpu& vnpu) {
  const VnpuTemplate* const found = rules.FindTemplate(vnpu.template_name);
  return found != nullptr ? found->amounts.aicore : 0;
}

// Cores that the members of each vGroup have.
std::map<int, double> VGroupCores(const VnpuRules& rules, const std::vector<const Vnpu*>& vnpus) {
  std::map<int, double> cores;
  for (const Vnpu* vnpu : vnpus) {
    if (vnpu->vgroup >= 0) cores[vnpu->vgroup] += AicoreOf(rules, *vnpu);
  }
  return cores;
}

// A vNPU with fewer cores than a vGroup has at least shares one with others of its kind, until the
// group's least number of cores is used; every other one has a group for itself.
int PickVGroup(const VnpuRules& rules, const std::vector<const Vnpu*>& vnpus, double aicore,
               std::optional<int> wanted, int* vgroup) {
  const std::map<int, double> groups = VGroupCores(rules, vnpus);
  if (wanted.has_value() && (*wanted < 0 || *wanted >= rules.vgroups)) {
    return DCMI_INVALID_PARAMETER;
  }
  double taken = 0;
  for (const auto& [group, cores] : groups) taken += std::max(cores, rules.vgroup_aicore);
  const double total = BudgetAmounts(rules).aicore;
  const bool new_group_fits = taken + std::max(aicore, rules.vgroup_aicore) <= total;
  const auto takes = [&](int group) {
    const auto found = groups.find(group);
    if (found == groups.end()) return new_group_fits;
    // A full group, or one of a larger vNPU, has its least number of cores or more.
    return found->second + aicore <= rules.vgroup_aicore;
  };
  if (wanted.has_value()) {
    if (!takes(*wanted)) return DCMI_INNER_ERR;
    *vgroup = *wanted;
    return DCMI_OK;
  }
  // Groups in use first, so that small ones leave room for large ones.
  for (const bool in_use : {true, false}) {
    for (int group = 0; group < rules.vgroups; ++group) {
      if ((groups.count(group) != 0) == in_use && takes(group)) {
        *vgroup = group;
        return DCMI_OK;
      }
    }
  }
  return DCMI_INNER_ERR;
}

int PickId(const VnpuRules& rules, int physical_id, const std::vector<const Vnpu*>& vnpus,
           std::optional<int> wanted, int* id) {
  std::set<int> used;
  for (const Vnpu* vnpu : vnpus) used.insert(vnpu->id);
  const int first = FirstVnpuId(physical_id), end = first + rules.max_vnpus;
  if (wanted.has_value() && rules.explicit_ids != ExplicitIds::kIgnores) {
    if (rules.explicit_ids == ExplicitIds::kRefuses || *wanted < first || *wanted >= end) {
      return DCMI_INVALID_PARAMETER;
    }
    *id = *wanted;
    return used.count(*wanted) != 0 ? DCMI_RESOURCE_OCCUPIED : DCMI_OK;
  }
  for (*id = first; *id < end; ++*id) {
    if (used.count(*id) == 0) return DCMI_OK;
  }
  return DCMI_INNER_ERR;
}

}  // namespace

const VnpuTemplate* VnpuRules::FindTemplate(const std::string& name) const {
  for (const VnpuTemplate& candidate : templates) {
    if (candidate.name == name) return &candidate;
  }
  return nullptr;
}

VnpuRules ParseVnpuRules(Object& object) {
  VnpuRules rules;
  if (auto budget = object.Child("budget")) {
    rules.budget = GetAmounts(*budget);
    budget->Finish();
  }
  object.Get("reportedMemory", &rules.reported_memory);
  object.Get("maxVnpus", &rules.max_vnpus);
  if (rules.max_vnpus < 1 || rules.max_vnpus > kIdsPerChip) {
    object.Fail("needs a maxVnpus from 1 to " + std::to_string(kIdsPerChip));
  }
  if (auto groups = object.Child("vGroups")) {
    groups->Get("count", &rules.vgroups);
    groups->Get("aicore", &rules.vgroup_aicore);
    groups->Finish();
    if (rules.vgroups < 1 || rules.vgroups > 32) groups->Fail("needs a count from 1 to 32");
    if (rules.vgroup_aicore <= 0) groups->Fail("needs more than 0 for aicore");
  }
  std::string ids = "honours";
  object.Get("explicitIDs", &ids);
  if (ids != "honours" && ids != "ignores" && ids != "refuses") {
    object.Fail("needs honours, ignores or refuses for explicitIDs");
  }
  rules.explicit_ids = ids == "honours"   ? ExplicitIds::kHonours
                       : ids == "ignores" ? ExplicitIds::kIgnores
                                          : ExplicitIds::kRefuses;
  object.Get("create", &rules.create);
  if (const Json* templates = object.Find("templates")) {
    if (!templates->is_array()) object.Fail("needs an array for templates");
    for (const Json& json : *templates) {
      VnpuTemplate next = ParseTemplate(Object(json, object.where() + ".templates"));
      if (rules.FindTemplate(next.name) != nullptr) {
        object.Fail("has the template " + next.name + " twice");
      }
      rules.templates.push_back(std::move(next));
    }
  }
  object.Finish();
  return rules;
}

int FirstVnpuId(int physical_id) { return kFirstId + kIdsPerChip * physical_id; }

int PlanVnpu(const VnpuRules& rules, int physical_id, const std::vector<Vnpu>& existing,
             const VnpuWish& wish, Vnpu* made) {
  const VnpuTemplate* const wanted = rules.FindTemplate(wish.template_name);
  if (wanted == nullptr) return DCMI_INVALID_PARAMETER;
  const std::vector<const Vnpu*> vnpus = OfChip(physical_id, existing);
  if (static_cast<int>(vnpus.size()) >= rules.max_vnpus ||
      !Fits(rules, UsedAmounts(rules, physical_id, existing), wanted->amounts)) {
    return DCMI_INNER_ERR;
  }
  *made = Vnpu{.physical_id = physical_id, .template_name = wish.template_name};
  if (rules.vgroups > 0) {
    const int code = PickVGroup(rules, vnpus, wanted->amounts.aicore, wish.vgroup, &made->vgroup);
    if (code != DCMI_OK) return code;
  }
  return PickId(rules, physical_id, vnpus, wish.id, &made->id);
}

VnpuAmounts BudgetAmounts(const VnpuRules& rules) { return ToAmounts(rules.budget); }

VnpuAmounts UsedAmounts(const VnpuRules& rules, int physical_id,
                        const std::vector<Vnpu>& existing) {
  VnpuAmounts used;
  for (const Vnpu* vnpu : OfChip(physical_id, existing)) {
    const VnpuTemplate* const found = rules.FindTemplate(vnpu->template_name);
    if (found == nullptr) continue;
    for (const auto& [name, member] : kResources) used.*member += found->amounts.*member;
  }
  return used;
}

unsigned VGroupBitmap(int physical_id, const std::vector<Vnpu>& existing) {
  unsigned bits = 0;
  for (const Vnpu* vnpu : OfChip(physical_id, existing)) {
    if (vnpu->vgroup >= 0) bits |= 1u << vnpu->vgroup;
  }
  return bits;
}

}  // namespace ascend::dcmi::mock

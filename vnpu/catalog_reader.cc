#include "vnpu/catalog_reader.h"

#include <yaml-cpp/yaml.h>

#include <initializer_list>
#include <limits>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/core/status_macros.h"
#include "vnpu/partition_plan.h"
#include "vnpu/vnpu_ids.h"

namespace ascend::vnpu {
namespace {

constexpr size_t kMaxTemplateName = 32;  // the library's field holds as many bytes, and a NUL
constexpr size_t kMaxProductName = 63;
constexpr int64_t kMaxAmount = std::numeric_limits<int32_t>::max();

absl::Status Invalid(const YAML::Node& node, absl::string_view what) {
  const int line = node.Mark().line;
  return absl::InvalidArgumentError(line >= 0 ? absl::StrCat("line ", line + 1, ": ", what)
                                              : std::string(what));
}

// yaml-cpp keeps the first of two equal keys; that is a mistake nobody should have to find.
absl::Status CheckMap(const YAML::Node& map, absl::string_view where,
                      std::initializer_list<absl::string_view> required,
                      std::initializer_list<absl::string_view> optional) {
  if (!map.IsMap()) return Invalid(map, absl::StrCat(where, " must be a mapping"));
  std::set<std::string> seen;
  for (const auto& entry : map) {
    if (!entry.first.IsScalar()) return Invalid(entry.first, "keys must be strings");
    const std::string& key = entry.first.Scalar();
    if (!absl::c_linear_search(required, key) && !absl::c_linear_search(optional, key)) {
      return Invalid(entry.first, absl::StrCat(where, " has no key \"", key, "\""));
    }
    if (!seen.insert(key).second) {
      return Invalid(entry.first, absl::StrCat("key ", key, " appears twice"));
    }
  }
  for (const absl::string_view key : required) {
    if (seen.count(std::string(key)) == 0) {
      return Invalid(map, absl::StrCat(where, " needs ", key));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckList(const YAML::Node& list, absl::string_view where) {
  if (list.IsSequence()) return absl::OkStatus();
  return Invalid(list, absl::StrCat(where, " must be a list"));
}

// The member, undefined if there is none. A copy per call: nodes are handles.
YAML::Node Get(const YAML::Node& map, absl::string_view key) { return map[std::string(key)]; }

absl::StatusOr<int64_t> Integer(const YAML::Node& node, absl::string_view where, int64_t min,
                                int64_t max) {
  int64_t value = 0;
  const std::string text = node.IsScalar() ? node.Scalar() : "";
  // yaml-cpp would take 010 for eight.
  const bool number = absl::StartsWith(text, "0x") ? absl::SimpleHexAtoi(text, &value)
                                                   : absl::SimpleAtoi(text, &value);
  if (!number || value < min || value > max) {
    return Invalid(node, absl::StrCat(where, " must be a whole number from ", min, " to ", max));
  }
  return value;
}

template <typename T>
absl::Status ReadSet(const YAML::Node& product, absl::string_view key, int64_t min, int64_t max,
                     std::set<T>* values) {
  const YAML::Node list = Get(product, key);
  if (!list.IsDefined()) return absl::OkStatus();
  ASCEND_RETURN_IF_ERROR(CheckList(list, key));
  for (const YAML::Node& item : list) {
    ASCEND_ASSIGN_OR_RETURN(const int64_t value, Integer(item, key, min, max));
    if (!values->insert(static_cast<T>(value)).second) {
      return Invalid(item, absl::StrCat(key, " lists ", item.Scalar(), " twice"));
    }
  }
  return absl::OkStatus();
}

// "vir05_1c_8g"
bool IsTemplateName(absl::string_view name) {
  return !name.empty() && name.size() <= kMaxTemplateName && absl::ascii_islower(name[0]) &&
         absl::c_all_of(name, [](char c) {
           return absl::ascii_islower(c) || absl::ascii_isdigit(c) || c == '_';
         });
}

bool IsProductName(absl::string_view name) {
  return !name.empty() && name.size() <= kMaxProductName && absl::ascii_isalnum(name[0]) &&
         absl::c_all_of(name, [](char c) {
           return absl::ascii_isalnum(c) || c == '-' || c == '.' || c == '_';
         });
}

// Of a mapping that CheckMap() has seen. Amounts of templates may say zero; in a budget zero would
// mean "does not limit", which nobody who writes it expects.
absl::StatusOr<Amounts> ReadAmounts(const YAML::Node& map, int64_t min) {
  Amounts amounts;
  for (const Resource resource : kResources) {
    const YAML::Node value = Get(map, ResourceName(resource));
    if (!value.IsDefined()) continue;
    const bool always = resource == Resource::kAicore || resource == Resource::kMemory;
    ASCEND_ASSIGN_OR_RETURN(amounts[resource],
                            Integer(value, ResourceName(resource), always ? 1 : min, kMaxAmount));
  }
  return amounts;
}

absl::StatusOr<Template> ReadTemplate(const YAML::Node& map, const Amounts& budget) {
  ASCEND_RETURN_IF_ERROR(
      CheckMap(map, "a template", {"name", "aicore", "memory"},
               {"aicpu", "vpc", "venc", "vdec", "jpegd", "jpege", "advertisedMemory"}));
  Template result;
  const YAML::Node name = Get(map, "name");
  if (!name.IsScalar() || !IsTemplateName(name.Scalar())) {
    return Invalid(name, absl::StrCat("name must be a template's: a small letter, then at most ",
                                      kMaxTemplateName - 1, " small letters, digits and _"));
  }
  result.name = name.Scalar();
  ASCEND_ASSIGN_OR_RETURN(result.amounts, ReadAmounts(map, 0));
  for (const Resource resource : kResources) {
    if (budget[resource] == 0 || result.amounts[resource] <= budget[resource]) continue;
    return Invalid(
        Get(map, ResourceName(resource)),
        absl::StrCat("template ", result.name, ": ", ResourceName(resource), " ",
                     result.amounts[resource], " is more than the budget's ", budget[resource]));
  }
  result.advertised_memory_mib = result.amounts[Resource::kMemory];
  if (const YAML::Node advertised = Get(map, "advertisedMemory"); advertised.IsDefined()) {
    ASCEND_ASSIGN_OR_RETURN(
        result.advertised_memory_mib,
        Integer(advertised, "advertisedMemory", result.advertised_memory_mib, kMaxAmount));
  }
  return result;
}

absl::Status ReadTemplates(const YAML::Node& list, Product* product) {
  ASCEND_RETURN_IF_ERROR(CheckList(list, "templates"));
  if (list.size() == 0) return Invalid(list, "templates must not be empty");
  std::set<std::string> names;
  for (const YAML::Node& item : list) {
    ASCEND_ASSIGN_OR_RETURN(Template read, ReadTemplate(item, product->budget));
    if (!names.insert(read.name).second) {
      return Invalid(item, absl::StrCat("template ", read.name, " appears twice"));
    }
    product->templates.push_back(std::move(read));
  }
  absl::c_sort(product->templates, [](const Template& a, const Template& b) {
    return std::tie(a.amounts.values, a.name) < std::tie(b.amounts.values, b.name);
  });
  return absl::OkStatus();
}

absl::Status ReadUncertain(const YAML::Node& product, Product* result) {
  const YAML::Node list = Get(product, "uncertain");
  if (!list.IsDefined()) return absl::OkStatus();
  ASCEND_RETURN_IF_ERROR(CheckList(list, "uncertain"));
  for (const YAML::Node& item : list) {
    const std::string name = item.IsScalar() ? item.Scalar() : "";
    const auto* const resource =
        absl::c_find_if(kResources, [&name](Resource r) { return ResourceName(r) == name; });
    // Cores tell whether the product is the right one, and chips report more memory than there is.
    if (resource == kResources.end() || *resource == Resource::kAicore ||
        *resource == Resource::kMemory || result->budget[*resource] == 0) {
      return Invalid(item,
                     "uncertain must list resources of the budget, and neither aicore nor memory");
    }
    if (!result->uncertain.insert(*resource).second) {
      return Invalid(item, absl::StrCat("uncertain lists ", name, " twice"));
    }
  }
  return absl::OkStatus();
}

absl::Status ReadVGroups(const YAML::Node& product, Product* result) {
  const YAML::Node map = Get(product, "vgroups");
  if (!map.IsDefined()) return absl::OkStatus();
  ASCEND_RETURN_IF_ERROR(CheckMap(map, "vgroups", {"count", "aicore"}, {}));
  if (result->family != Family::k310P) return Invalid(map, "only 310P has vgroups");
  ASCEND_ASSIGN_OR_RETURN(const int64_t count,
                          Integer(Get(map, "count"), "vgroups.count", 1, kMaxVGroups));
  ASCEND_ASSIGN_OR_RETURN(const int64_t aicore, Integer(Get(map, "aicore"), "vgroups.aicore", 1,
                                                        result->budget[Resource::kAicore]));
  if (count * aicore > result->budget[Resource::kAicore]) {
    return Invalid(
        map, absl::StrCat("vgroups: ", count, " of ", aicore, " cores are more than the budget's ",
                          result->budget[Resource::kAicore]));
  }
  result->vgroups = {.count = static_cast<int>(count), .aicore = static_cast<int>(aicore)};
  return absl::OkStatus();
}

// Every template must fit the vGroups, and all partitions one slice.
absl::Status CheckPartitions(const YAML::Node& node, const Product& product) {
  Amounts most = product.budget;
  for (const Resource resource : product.uncertain) most[resource] = 0;  // no limit
  for (const Template& candidate : product.templates) {
    if (!FindPartition(product, most, candidate.name, 0).has_value()) {
      return Invalid(node, absl::StrCat("template ", candidate.name, " does not fit the vgroups"));
    }
  }
  const size_t partitions = PlanPartitions(product, most, std::nullopt).devices.size();
  if (partitions <= kMaxPartitionsPerChip) return absl::OkStatus();
  return Invalid(
      node, absl::StrCat("the templates make ", partitions,
                         " partitions possible on a chip, more than the ", kMaxPartitionsPerChip,
                         " that can be published: leave some out"));
}

absl::StatusOr<Product> ReadProduct(const YAML::Node& map) {
  ASCEND_RETURN_IF_ERROR(
      CheckMap(map, "a product", {"product", "family", "budget", "templates"},
               {"boards", "aicore", "memory", "uncertain", "vgroups", "maxVnpus", "optIn"}));
  Product product;
  const YAML::Node name = Get(map, "product");
  if (!name.IsScalar() || !IsProductName(name.Scalar())) {
    return Invalid(name, "product must be a name of letters, digits, -, . and _");
  }
  product.name = name.Scalar();
  const YAML::Node family = Get(map, "family");
  product.family = family.IsScalar() ? FamilyFromName(family.Scalar()) : Family::kUnknown;
  if (product.family == Family::kUnknown) {
    return Invalid(family, "family must be one of 310, 310B, 310P, 910A, 910B, A3 and 950");
  }
  ASCEND_RETURN_IF_ERROR(
      ReadSet(map, "boards", 1, std::numeric_limits<uint32_t>::max(), &product.boards));
  ASCEND_RETURN_IF_ERROR(ReadSet(map, "aicore", 1, kMaxAmount, &product.aicore_counts));
  ASCEND_RETURN_IF_ERROR(ReadSet(map, "memory", 1, kMaxAmount, &product.memory_mib));
  const YAML::Node budget = Get(map, "budget");
  ASCEND_RETURN_IF_ERROR(CheckMap(budget, "budget", {"aicore", "memory"},
                                  {"aicpu", "vpc", "venc", "vdec", "jpegd", "jpege"}));
  ASCEND_ASSIGN_OR_RETURN(product.budget, ReadAmounts(budget, 1));
  const int64_t aicore = product.budget[Resource::kAicore];
  if (!product.aicore_counts.empty() &&
      product.aicore_counts.count(static_cast<int>(aicore)) == 0) {
    return Invalid(budget,
                   absl::StrCat("budget: aicore ", aicore, " is not among those of aicore"));
  }
  ASCEND_RETURN_IF_ERROR(ReadUncertain(map, &product));
  ASCEND_RETURN_IF_ERROR(ReadVGroups(map, &product));
  if (const YAML::Node vnpus = Get(map, "maxVnpus"); vnpus.IsDefined()) {
    ASCEND_ASSIGN_OR_RETURN(product.max_vnpus, Integer(vnpus, "maxVnpus", 1, kMaxVnpusPerChip));
  }
  if (const YAML::Node opt_in = Get(map, "optIn"); opt_in.IsDefined()) {
    if (!opt_in.IsScalar() || !YAML::convert<bool>::decode(opt_in, product.opt_in)) {
      return Invalid(opt_in, "optIn must be true or false");
    }
  }
  ASCEND_RETURN_IF_ERROR(ReadTemplates(Get(map, "templates"), &product));
  ASCEND_RETURN_IF_ERROR(CheckPartitions(map, product));
  return product;
}

absl::StatusOr<std::vector<Product>> ReadList(const YAML::Node& list) {
  std::vector<Product> products;
  if (list.IsNull()) return products;
  ASCEND_RETURN_IF_ERROR(CheckList(list, "the catalog"));
  std::set<std::string> names;
  for (const YAML::Node& item : list) {
    absl::StatusOr<Product> product = ReadProduct(item);
    if (!product.ok()) {
      const YAML::Node name = item.IsMap() ? Get(item, "product") : YAML::Node();
      if (!name.IsDefined() || !name.IsScalar()) return product.status();
      return Annotate(product.status(), absl::StrCat("product ", name.Scalar()));
    }
    if (!names.insert(product->name).second) {
      return Invalid(item, absl::StrCat("product ", product->name, " appears twice"));
    }
    products.push_back(*std::move(product));
  }
  return products;
}

}  // namespace

absl::StatusOr<std::vector<Product>> ReadProducts(absl::string_view yaml) {
  try {
    const std::vector<YAML::Node> documents = YAML::LoadAll(std::string(yaml));
    if (documents.empty()) return std::vector<Product>();
    if (documents.size() > 1) return Invalid(documents[1], "more than one YAML document");
    return ReadList(documents[0]);
  } catch (const YAML::Exception& error) {  // yaml-cpp has no other way to report
    return absl::InvalidArgumentError(absl::StrCat("not valid YAML: ", error.what()));
  }
}

}  // namespace ascend::vnpu

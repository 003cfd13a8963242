#include "vnpu/catalog.h"

#include <cstdlib>
#include <iostream>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_format.h"
#include "base/core/status_macros.h"
#include "vnpu/catalog_reader.h"

namespace ascend::vnpu {
namespace {

template <typename Set, typename T>
bool AnyOrAmong(const Set& set, T value) {
  return set.empty() || set.count(value) > 0;
}

bool Fits(const Product& product, const Chip& chip) {
  return product.family == chip.family && AnyOrAmong(product.boards, chip.board_id) &&
         AnyOrAmong(product.aicore_counts, chip.aicore_count) &&
         AnyOrAmong(product.memory_mib, chip.memory_mib);
}

}  // namespace

const Catalog& Catalog::BuiltIn() {
  static const Catalog& catalog = *[] {
    absl::StatusOr<std::vector<Product>> products = ReadProducts(BuiltInCatalogYaml());
    if (!products.ok()) {  // the program was built wrong; nothing in it can be trusted
      std::cerr << "built-in template catalog: " << products.status() << std::endl;
      std::abort();
    }
    auto* built_in = new Catalog();  // never deleted: used until the last thread ends
    built_in->products_ = *std::move(products);
    return built_in;
  }();
  return catalog;
}

absl::StatusOr<Catalog> Catalog::WithOverrides(absl::string_view yaml) {
  Catalog catalog;
  ASCEND_ASSIGN_OR_RETURN(catalog.products_, ReadProducts(yaml));
  const std::vector<Product> overrides = catalog.products_;
  for (const Product& product : BuiltIn().products()) {
    const auto same_name = [&product](const Product& other) { return other.name == product.name; };
    if (absl::c_none_of(overrides, same_name)) catalog.products_.push_back(product);
  }
  return catalog;
}

const Product* Catalog::Find(const Chip& chip) const {
  const auto found =
      absl::c_find_if(products_, [&chip](const Product& product) { return Fits(product, chip); });
  return found == products_.end() ? nullptr : &*found;
}

absl::StatusOr<Amounts> BudgetOf(const Product& product, const Chip& chip) {
  const Amounts reported = chip.partitioning.has_value() ? chip.partitioning->total : Amounts();
  const int64_t cores =
      reported[Resource::kAicore] > 0 ? reported[Resource::kAicore] : int64_t{chip.aicore_count};
  if (cores > 0 && cores != product.budget[Resource::kAicore]) {
    return absl::FailedPreconditionError(absl::StrFormat(
        "chip %d (board 0x%02x): the library reports %d AI cores, product %s of the template "
        "catalog has %d: these templates may not be the chip's; add a product for this board to "
        "vnpuCatalog in the driver's configuration, with what `npu-smi info -t template-info` "
        "shows, to have it partitioned",
        chip.physical_id, chip.board_id, cores, product.name, product.budget[Resource::kAicore]));
  }
  Amounts budget = product.budget;
  for (const Resource resource : kResources) {
    if (resource == Resource::kMemory || budget[resource] == 0 || reported[resource] <= 0) continue;
    if (reported[resource] < budget[resource] || product.uncertain.count(resource) > 0) {
      budget[resource] = reported[resource];
    }
  }
  return budget;
}

}  // namespace ascend::vnpu

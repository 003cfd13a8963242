// Which partitions a chip can be cut into, as data: templates and budgets per product.
//
// The built-in catalog is vnpu/catalog.yaml, compiled in; an operator's configuration may replace
// single products of it, or add some, in the same form:
//
//   - product: 910B-bin2              # a name of its own; that of a built-in one replaces it
//     family: 910B
//     boards: [0x33, 0x3c]            # empty or missing: any board of the family ...
//     aicore: [20]                    # ... with one of these core counts; missing: any
//     memory: [32768]                 # ... and one of these nominal sizes in MiB; missing: any
//     budget: {aicore: 20, aicpu: 7, memory: 28672, vpc: 9, vdec: 2, jpegd: 24, jpege: 4}
//     uncertain: [aicpu]              # what the chip reports wins, also if it is more
//     vgroups: {count: 4, aicore: 2}  # 310P only; at most 4
//     maxVnpus: 16                    # 1 to 16, which is what missing means
//     optIn: false                    # true: offered only if the operator asks for it
//     templates:                      # of at least aicore and memory; missing: none of it
//       - {name: vir05_1c_8g, aicore: 5, aicpu: 1, memory: 7168, vpc: 2, jpegd: 6, jpege: 1,
//          advertisedMemory: 8192}    # missing: the same as memory
//
// A resource that the budget does not name is not limited by it. Memory is what a partition can
// use, in MiB.
#ifndef ASCEND_DRA_VNPU_CATALOG_H_
#define ASCEND_DRA_VNPU_CATALOG_H_

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "vnpu/chip.h"
#include "vnpu/resources.h"

namespace ascend::vnpu {

struct Template {
  std::string name;  // "vir05_1c_8g"
  Amounts amounts;
  int64_t advertised_memory_mib = 0;  // what the name promises; the driver keeps a part
  friend bool operator==(const Template&, const Template&) = default;
};

// vGroups of a 310P: a partition of at least `aicore` cores has groups of its own, smaller ones
// share one.
struct VGroups {
  int count = 0;  // 0 = the product has none
  int aicore = 0;
  friend bool operator==(const VGroups&, const VGroups&) = default;
};

struct Product {
  std::string name;
  Family family = Family::kUnknown;
  std::set<uint32_t> boards;     // empty = any
  std::set<int> aicore_counts;   // empty = any
  std::set<int64_t> memory_mib;  // empty = any; nominal
  Amounts budget;                // zero = not limited by this resource
  // Of the budget's resources those that nobody could confirm: what the chip reports wins, also if
  // it is more.
  std::set<Resource> uncertain;
  VGroups vgroups;
  int max_vnpus = 16;
  // The driver may know these templates only in part (A3): offered only if the operator asks for
  // it.
  bool opt_in = false;
  std::vector<Template> templates;  // ascending by aicore, aicpu, memory, media engines, name
  friend bool operator==(const Product&, const Product&) = default;
};

// A value: copied freely, const calls from any thread.
class Catalog {
 public:
  // Lives as long as the process.
  static const Catalog& BuiltIn();

  // The built-in products and those in `yaml`, which is a list as above: strict, an unknown key, a
  // missing or repeated one, a template larger than the budget, a name that is no template name, or
  // more partitions than a slice holds is kInvalidArgument with the line and what is wrong. An
  // empty text is the built-in catalog.
  static absl::StatusOr<Catalog> WithOverrides(absl::string_view yaml);

  // The first product that fits: the operator's come first. Null for an unknown board: nobody
  // guesses. Valid as long as the catalog.
  const Product* Find(const Chip& chip) const;
  const std::vector<Product>& products() const { return products_; }

 private:
  std::vector<Product> products_;
};

// What of the chip can be divided: the product's budget, corrected by what the chip reports (memory
// is not compared: chips report more than can be handed out). kFailedPrecondition, for the log, if
// the chip's cores are not the product's: then the table is not this chip's.
absl::StatusOr<Amounts> BudgetOf(const Product& product, const Chip& chip);

}  // namespace ascend::vnpu

#endif  // ASCEND_DRA_VNPU_CATALOG_H_

// The catalog's text form: catalog.h shows it.
#ifndef ASCEND_DRA_VNPU_CATALOG_READER_H_
#define ASCEND_DRA_VNPU_CATALOG_READER_H_

#include <cstddef>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "vnpu/catalog.h"

namespace ascend::vnpu {

// vnpu/catalog.yaml, compiled in.
absl::string_view BuiltInCatalogYaml();

// The products of a list in that form, in its order; none of an empty text. kInvalidArgument with
// the line, the product and what is wrong.
absl::StatusOr<std::vector<Product>> ReadProducts(absl::string_view yaml);

// A chip's devices, itself included, go into one ResourceSlice, which holds 64 that use counters.
inline constexpr size_t kMaxPartitionsPerChip = 63;

}  // namespace ascend::vnpu

#endif  // ASCEND_DRA_VNPU_CATALOG_READER_H_

// Kubernetes quantities ("64Gi", "1500m") as the API server writes them back.
#ifndef ASCEND_DRA_TEST_SIM_QUANTITY_H_
#define ASCEND_DRA_TEST_SIM_QUANTITY_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace ascend::sim {

// The canonical form: no fraction and the largest suffix of the same kind that loses nothing
// ("1024Mi" becomes "1Gi", "1000" becomes "1k"). kInvalidArgument if it is not a quantity.
absl::StatusOr<std::string> CanonicalQuantity(absl::string_view text);

}  // namespace ascend::sim

#endif  // ASCEND_DRA_TEST_SIM_QUANTITY_H_

// A parsed file before it is known to be a CDI spec, and the step from there. JSON and YAML readers
// both end here, so they agree on what a spec may hold.
#ifndef ASCEND_DRA_CDI_DOCUMENT_H_
#define ASCEND_DRA_CDI_DOCUMENT_H_

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "cdi/spec.h"

namespace ascend::cdi {

// Limits of every reader, and a lower one for YAML: yaml-cpp may need 200 bytes of memory for one
// of hostile text.
inline constexpr size_t kMaxDocumentSize = 4 << 20;
inline constexpr size_t kMaxYamlSize = 1 << 20;
inline constexpr size_t kMaxDocumentDepth = 32;

// A YAML scalar without quotes: a string, an integer or a boolean, as the member asks for.
struct PlainScalar {
  std::string text;
};

struct Member;
struct Value {
  using Null = std::monostate;
  using Array = std::vector<Value>;
  using Object = std::vector<Member>;  // in the order of the file; keys are unique
  // uint64_t: only what int64_t cannot hold. double: everything with a point or an exponent.
  std::variant<Null, bool, int64_t, uint64_t, double, std::string, PlainScalar, Array, Object> data;
};
struct Member {
  std::string key;
  Value value;
};

// Takes the members over by name and type, without the rules of validate.h. Refused are unknown
// members, wrong types (nothing is converted), numbers out of range, and null inside arrays and
// maps, on which runtimes crash. A member that is null is absent.
absl::StatusOr<Spec> DecodeSpec(Value document);

}  // namespace ascend::cdi

#endif  // ASCEND_DRA_CDI_DOCUMENT_H_

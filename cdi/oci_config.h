// Typed access to the parts of an OCI runtime configuration that CDI edits. Not for users of the
// library.
#ifndef ASCEND_DRA_CDI_OCI_CONFIG_H_
#define ASCEND_DRA_CDI_OCI_CONFIG_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "cdi/injector.h"
#include "nlohmann/json.hpp"

namespace ascend::cdi {

// The names of the lists in `hooks`.
inline constexpr const char* kHookNames[] = {"prestart",       "createRuntime", "createContainer",
                                             "startContainer", "poststart",     "poststop"};

// Whether every member that an injection reads or changes has the type that the OCI specification
// gives it; what it does not touch is not looked at. Members that are null count as absent.
// kInvalidArgument with the place: "process.env[3]: must be a string".
absl::Status CheckOciConfig(const OciConfig& config);

// The functions below are for a configuration that passed CheckOciConfig, and its members.

// Null if the member is absent.
const OciConfig* FindMember(const OciConfig& object, absl::string_view key);
// Create an absent member, which moves the others: references to those are no longer valid, but
// references to the elements of an array are.
OciConfig& ValueIn(OciConfig& object, absl::string_view key);
OciConfig& ObjectIn(OciConfig& object, absl::string_view key);
OciConfig::array_t& ArrayIn(OciConfig& object, absl::string_view key);

// The text of a string member, "" if it is absent. Borrowed from `object`.
const std::string& TextIn(const OciConfig& object, absl::string_view key);

// The user that the process runs as; 0 where the configuration does not say.
struct ProcessUser {
  uint32_t uid = 0;
  uint32_t gid = 0;
};
ProcessUser ProcessUserOf(const OciConfig& config);

// Whether there is a user namespace, with or without mappings of both uids and gids.
enum class UserNamespace { kNone, kWithoutMappings, kMapped };
UserNamespace UserNamespaceOf(const OciConfig& config);

}  // namespace ascend::cdi

#endif  // ASCEND_DRA_CDI_OCI_CONFIG_H_

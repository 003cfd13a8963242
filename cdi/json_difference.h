// Where two JSON values differ.
#ifndef ASCEND_DRA_CDI_JSON_DIFFERENCE_H_
#define ASCEND_DRA_CDI_JSON_DIFFERENCE_H_

#include <string>
#include <vector>

#include "nlohmann/json_fwd.hpp"

namespace ascend::cdi {

// One line for each smallest part that differs, by its JSON pointer below `pointer`:
// "/devices/0/name: expected "a", got "b"". Empty if the values are equal; members of objects have
// no order, elements of arrays do, and 1 equals 1.0.
std::vector<std::string> JsonDifferences(const nlohmann::json& expected, const nlohmann::json& got,
                                         const std::string& pointer = "");

}  // namespace ascend::cdi

#endif  // ASCEND_DRA_CDI_JSON_DIFFERENCE_H_

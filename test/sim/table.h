// Columns of text, aligned.
#ifndef ASCEND_DRA_TEST_SIM_TABLE_H_
#define ASCEND_DRA_TEST_SIM_TABLE_H_

#include <string>
#include <vector>

namespace ascend::sim {

// One line per row, each cell but the last of a row padded to its column, two spaces between and in
// front. Characters outside ASCII count by their number, not by their bytes.
std::string FormatTable(const std::vector<std::vector<std::string>>& rows);

// "1.8 ms", "63 ms", "2.4 s".
std::string FormatMilliseconds(double milliseconds);

}  // namespace ascend::sim

#endif  // ASCEND_DRA_TEST_SIM_TABLE_H_

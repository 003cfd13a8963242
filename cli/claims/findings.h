// What is wrong with the claims' files on a node.
#ifndef ASCEND_DRA_CLI_CLAIMS_FINDINGS_H_
#define ASCEND_DRA_CLI_CLAIMS_FINDINGS_H_

#include <string>
#include <vector>

#include "cli/claims/node_files.h"

namespace ascend::cli {

struct Finding {
  std::string kind;     // one word of a fixed set, for scripts: "record_unreadable"
  std::string claim;    // "namespace/name"; empty = unknown
  std::string uid;      // empty = unknown
  std::string path;     // of the file in question
  std::string problem;  // for people
  std::string remedy;
};

// In the order in which to care: records first, leftovers last.
std::vector<Finding> FindProblems(const NodeFiles& files);

}  // namespace ascend::cli

#endif  // ASCEND_DRA_CLI_CLAIMS_FINDINGS_H_

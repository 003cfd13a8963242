#include "absl/strings/str_cat.h"
#include "cli/claims/commands.h"
#include "cli/claims/findings.h"
#include "nlohmann/json.hpp"

namespace ascend::cli {

int VerifyClaims(const NodeFiles& files, const Output& out) {
  const std::vector<Finding> findings = FindProblems(files);
  const size_t records = files.records.records.size() + files.records.unreadable.size();
  if (out.json) {
    nlohmann::ordered_json list = nlohmann::ordered_json::array();
    for (const Finding& finding : findings) {
      list.push_back({{"kind", finding.kind},
                      {"claim", finding.claim},
                      {"uid", finding.uid},
                      {"path", finding.path},
                      {"problem", finding.problem},
                      {"remedy", finding.remedy}});
    }
    PrintJson({{"records", records}, {"findings", std::move(list)}}, out);
  } else {
    for (const Finding& finding : findings) {
      const std::string& who = finding.claim.empty() ? finding.uid : finding.claim;
      out.text << finding.kind << ": " << Printable(finding.path) << "\n";
      if (!who.empty()) out.text << "  claim:   " << Printable(who) << "\n";
      out.text << "  problem: " << Printable(finding.problem) << "\n"
               << "  do:      " << Printable(finding.remedy) << "\n";
    }
    out.text << records << (records == 1 ? " record, " : " records, ") << findings.size()
             << (findings.size() == 1 ? " finding\n" : " findings\n");
  }
  return findings.empty() ? kExitOk : kExitFindings;
}

}  // namespace ascend::cli

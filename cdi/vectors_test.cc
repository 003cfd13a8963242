// Replays the recorded answers of the reference library: cdi/testdata/README.md.
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/core/status_matchers.h"
#include "base/core/strings.h"
#include "cdi/annotations.h"
#include "cdi/json.h"
#include "cdi/name.h"
#include "cdi/version.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace ascend::cdi {
namespace {

using Json = nlohmann::json;

// Puts the long strings in.
Json Expand(const Json& value, const std::map<std::string, std::string>& tokens) {
  if (value.is_string()) {
    std::string text = value.get<std::string>();
    for (const auto& [token, replacement] : tokens) {
      text = absl::StrReplaceAll(text, {{token, replacement}});
    }
    return text;
  }
  if (value.is_array()) {
    Json result = Json::array();
    for (const Json& item : value) result.push_back(Expand(item, tokens));
    return result;
  }
  if (value.is_object()) {
    Json result = Json::object();
    for (const auto& [key, item] : value.items()) {
      result[Expand(key, tokens).get<std::string>()] = Expand(item, tokens);
    }
    return result;
  }
  return value;
}

std::vector<Json> Load(const std::string& file) {
  std::ifstream stream(absl::StrCat(CDI_TESTDATA, "/", file));
  EXPECT_TRUE(stream.good()) << file;
  std::vector<Json> cases;
  for (std::string line; std::getline(stream, line);) {
    Json parsed = Json::parse(line);
    std::map<std::string, std::string> tokens;
    if (parsed.contains("repeat")) {
      for (const auto& [token, text_and_count] : parsed["repeat"].items()) {
        std::string& text = tokens[token];
        for (int i = 0; i < text_and_count[1].get<int>(); ++i) {
          text += text_and_count[0].get<std::string>();
        }
      }
      parsed.erase("repeat");
    }
    cases.push_back(Expand(parsed, tokens));
  }
  return cases;
}

TEST(VectorsTest, QualifiedNames) {
  const std::vector<Json> cases = Load("qualified-name.jsonl");
  EXPECT_EQ(cases.size(), 33u);
  for (const Json& test : cases) {
    SCOPED_TRACE(test["id"].get<std::string>());
    const std::string text = test["text"];
    const Json& expect = test["expect"];
    const absl::StatusOr<QualifiedName> parsed = ParseQualifiedName(text);
    EXPECT_EQ(parsed.ok(), expect["ok"].get<bool>()) << parsed.status();
    const QualifiedName name = parsed.value_or(QualifiedName{"", "", text});
    EXPECT_EQ(Json(name.vendor), expect["vendor"]);
    EXPECT_EQ(Json(name.device_class), expect["class"]);
    EXPECT_EQ(Json(name.name), expect["name"]);
    if (parsed.ok()) {
      EXPECT_EQ(parsed->ToString(), text);
    }
    const QualifiedName split = SplitQualifiedName(text);
    EXPECT_EQ(Json({split.vendor, split.device_class, split.name}), expect["parseDevice"]);
  }
}

TEST(VectorsTest, AnnotationKeys) {
  const std::vector<Json> cases = Load("annotation-key.jsonl");
  EXPECT_EQ(cases.size(), 7u);
  for (const Json& test : cases) {
    SCOPED_TRACE(test["id"].get<std::string>());
    const Json& expect = test["expect"];
    const absl::StatusOr<std::string> key =
        AnnotationKey(test["args"][0].get<std::string>(), test["args"][1].get<std::string>());
    EXPECT_EQ(key.ok(), expect["ok"].get<bool>()) << key.status();
    if (key.ok()) {
      EXPECT_EQ(Json(*key), expect["key"]);
    }
  }
}

TEST(VectorsTest, TransientNames) {
  const std::vector<Json> cases = Load("transient-name.jsonl");
  EXPECT_EQ(cases.size(), 5u);
  for (const Json& test : cases) {
    SCOPED_TRACE(test["id"].get<std::string>());
    const Json& args = test["args"];
    EXPECT_EQ(Json(TransientSpecFileName(args[0].get<std::string>(), args[1].get<std::string>(),
                                         args[2].get<std::string>())),
              test["expect"]["name"]);
  }
}

TEST(VectorsTest, JsonSpecs) {
  const std::vector<Json> cases = Load("spec.jsonl");
  EXPECT_EQ(cases.size(), 175u);
  // These traits allow a refusal, and we refuse.
  const std::set<std::string> refused = {"yaml", "loose-json", "coercion", "yaml-folding"};
  int json_files = 0;
  int free_to_refuse = 0;
  for (const Json& test : cases) {
    if (!absl::EndsWith(test["file"].get<std::string>(), ".json")) continue;
    ++json_files;
    SCOPED_TRACE(test["id"].get<std::string>());
    const Json& expect = test["expect"];
    bool ok = expect["ok"];
    for (const Json& trait : test.value("traits", Json::array())) {
      if (ok && refused.count(trait) != 0) {
        ok = false;
        ++free_to_refuse;
      }
    }
    const absl::StatusOr<Spec> spec = ReadJson(test["text"].get<std::string>());
    ASSERT_EQ(spec.ok(), ok) << spec.status() << "\n" << test["title"];
    if (!ok) {
      EXPECT_THAT(spec, StatusIs(absl::StatusCode::kInvalidArgument));
      continue;
    }
    EXPECT_EQ(Json(ToStd(VersionName(MinimumVersion(*spec)))), expect["minVersion"]);
    const std::string canonical = FormatJson(*spec);
    EXPECT_EQ(Json::parse(canonical), expect["canonical"]);
    EXPECT_THAT(ReadJson(canonical), IsOkAndHolds(*spec));
  }
  EXPECT_EQ(json_files, 169);
  EXPECT_EQ(free_to_refuse, 9);
}

}  // namespace
}  // namespace ascend::cdi

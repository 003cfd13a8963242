#include "cdi/text.h"

#include <string>

#include "absl/strings/string_view.h"
#include "cdi/dns.h"
#include "gtest/gtest.h"

namespace ascend::cdi {
namespace {

TEST(TextTest, DecodesTheEdgesOfEveryLength) {
  const struct {
    absl::string_view text;
    char32_t character;
  } kTests[] = {{absl::string_view("\0", 1), 0},
                {"\x7F", 0x7F},
                {"\xC2\x80", 0x80},
                {"\xDF\xBF", 0x7FF},
                {"\xE0\xA0\x80", 0x800},
                {"\xED\x9F\xBF", 0xD7FF},
                {"\xEE\x80\x80", 0xE000},
                {"\xEF\xBF\xBF", 0xFFFF},
                {"\xF0\x90\x80\x80", 0x10000},
                {"\xF4\x8F\xBF\xBF", 0x10FFFF}};
  for (const auto& test : kTests) {
    char32_t character = 1;
    EXPECT_EQ(DecodeUtf8(test.text, &character), test.text.size());
    EXPECT_EQ(character, test.character);
  }
}

TEST(TextTest, RefusesWhatIsNotUtf8) {
  for (const char* text :
       {"\x80", "\xBF", "\xC0\x80", "\xC1\xBF", "\xC2", "\xC2\x41", "\xE0\x9F\xBF", "\xED\xA0\x80",
        "\xED\xBF\xBF", "\xE2\x82", "\xF0\x8F\xBF\xBF", "\xF4\x90\x80\x80", "\xF5\x80\x80\x80",
        "\xFF", "ok\xFE"}) {
    EXPECT_FALSE(IsValidUtf8(text)) << text;
  }
  EXPECT_TRUE(IsValidUtf8("a\xC3\xA9\xF0\x9F\x98\x80"));
  EXPECT_TRUE(IsValidUtf8(""));
}

TEST(TextTest, FindsControlCharacters) {
  for (const char* text : {"\n", "a\x1F", "\x7F", "\xC2\x80", "\xC2\x85", "a\xC2\x9F",
                           "\xEF\xBF\xBE", "\xEF\xBF\xBF"}) {
    EXPECT_TRUE(HasControlCharacter(text)) << text;
  }
  EXPECT_TRUE(HasControlCharacter(absl::string_view("a\0b", 3)));
  EXPECT_FALSE(HasControlCharacter(" ~\xC2\xA0\xE2\x80\xA8\xF0\x9F\x98\x80"));
}

TEST(DnsTest, Subdomains) {
  for (const std::string& name : {std::string("a"), std::string("k8s.npu.huawei.com"),
                                  std::string("1a.2b-c"), std::string(63, 'a')}) {
    EXPECT_TRUE(IsDnsSubdomain(name)) << name;
  }
  for (const std::string& name :
       {std::string(), std::string("."), std::string("a..b"), std::string("a."), std::string("-a"),
        std::string("a-.b"), std::string("A.b"), std::string("a_b"), std::string(64, 'a')}) {
    EXPECT_FALSE(IsDnsSubdomain(name)) << name;
  }
  std::string longest;
  for (int i = 0; i < 126; ++i) longest += "a.";
  EXPECT_TRUE(IsDnsSubdomain(longest + "a"));
  EXPECT_FALSE(IsDnsSubdomain(longest + "aa"));
}

}  // namespace
}  // namespace ascend::cdi

package main

import "math/rand/v2"

// random makes the decisions of one case, which depend on nothing but seed and number of the case.
type random struct{ *rand.Rand }

func newRandom(seed, number uint64) random {
	return random{rand.New(rand.NewPCG(seed, number))}
}

func (r random) chance(percent int) bool { return r.IntN(100) < percent }

func pick[T any](r random, from []T) T { return from[r.IntN(len(from))] }

func (r random) of(from ...string) string { return pick(r, from) }

// Members that several kinds of text and documents are made of.
var oddStrings = []string{
	"", " ", "a b", " a", "a ", "=", "A==", "=1", "A", "é", "日本", "😀", "a\u2028b", "a\u0085b", "\ufeffa",
	"a\ufeffb", "a\x7fb", "a\u0080b", "a\u009fb", "a\ufffeb", "a\uffffb", "a\ufffdb", "a\ue000b", "a\nb", "a\r\nb",
	"a\n", "\n", "a\tb", "\t", "'", "\"", "\\", "a\\b", "#x", "a #b", "a: b", "a:b", "a:", "- a", "-", "?", "? a",
	"!x", "&x", "*x", "{", "}", "[", "]", ",", "a, b", "%x", "@x", "`x", "|", ">", "null", "Null", "~", "yes", "no",
	"on", "y", "true", "True", "false", "010", "08", "0o17", "1.50", "0x10", "0b1", "1_0", "1e3", ".inf", ".nan", ".5",
	"5.", "+1", "-1", "12:30:45", "2001-01-01", "2001-01-01T00:00:00Z", "<<", "=", "$(x)", "%s", "/", "..", "a\x00b",
	"a\x01b", "a\x1bb", "---", "...", "\u0130", "\u212a", "\u00a0", "a\u00a0b", "a\u2029b", "\U0010ffff", long(64),
	long(300), long(1100), long(4096),
}

var edgeNumbers = []string{
	"-1", "-0", "0", "1", "1.0", "1.5", "1e3", "1E+2", "1e-2", "0.0", "-0.0", "-1.5", "4294967295", "4294967296",
	"2147483647", "2147483648", "9223372036854775807", "9223372036854775808", "-9223372036854775808",
	"-9223372036854775809", "18446744073709551615", "18446744073709551616", "1e400", "-1e400", "1e18", "1e19",
	"123456789012345678901234567890", "0.1", "4294967295.0", "4294967295.5",
}

// Numbers that only YAML knows how to spell.
var yamlNumbers = []string{
	"0666", "0o666", "0O666", "0x1b6", "0X1B6", "0b110", "+1", "1_000", "1__0", "_1", "1_", "0x_1", "0o7_7", "08", "09.5",
	"-0x1", "-0o7", "-0b1", "+0x1", ".5", "5.", "+.5", "1e", "1.e3", ".e3", ".inf", "-.inf", ".nan", "190:20:30",
	"0b2", "0o8", "0xg", "1 2", "00", "-00", "0_", "0.", "1e+", "+-1", "- 1", "0b", "0x", "0o", "0o-1", "0b-1", "+0o7", "+0b1",
	"0x8000000000000000", "0xffffffffffffffff", "0o1777777777777777777777", "0b_1", "1_000.5",
}

package main

import (
	"fmt"
	"strings"
	"unicode/utf16"
)

// jsonText spells a document as JSON, with the freedom that JSON leaves.
type jsonText struct {
	random
	newline, indent string
	afterColon      string
	// In percent.
	escapeAny  int // characters that need none
	escapeOdd  int // "\/" and surrogate pairs, which YAML does not know
	rawControl int // characters that JSON does not allow
	spaces     int // white space in odd places
}

func (r random) toJSON(v *value) string {
	j := jsonText{random: r, afterColon: r.of("", " ")}
	switch r.IntN(5) {
	case 0:
		j.newline, j.indent = "\n", "  "
	case 1:
		j.newline, j.indent = r.of("\r\n", "\n"), r.of("\t", "    ")
	}
	if r.chance(8) {
		j.escapeAny = 20
	}
	if r.chance(4) {
		j.escapeOdd = 30
	}
	if r.chance(2) {
		j.rawControl = 50
	}
	if r.chance(6) {
		j.spaces = 10
	}
	return j.print(v, "") + r.of("", "", "\n")
}

func (j jsonText) print(v *value, indent string) string {
	switch v.kind {
	case literal:
		return v.text
	case text:
		return j.quote(v.text)
	}
	open, end := "[", "]"
	if v.kind == object {
		open, end = "{", "}"
	}
	if len(v.items) == 0 {
		return open + j.space() + end
	}
	deeper := indent + j.indent
	var b strings.Builder
	b.WriteString(open)
	for i, item := range v.items {
		if i > 0 {
			b.WriteString(j.space() + ",")
		}
		b.WriteString(j.newline + deeper + j.space())
		if v.kind == object {
			b.WriteString(j.quote(v.keys[i]) + j.space() + ":" + j.afterColon + j.space())
		}
		b.WriteString(j.print(item, deeper))
	}
	b.WriteString(j.space() + j.newline + indent + end)
	return b.String()
}

func (j jsonText) space() string {
	if !j.chance(j.spaces) {
		return ""
	}
	return j.of(" ", "  ", "\t", "\n", "\r\n", "\n\n ")
}

func (j jsonText) quote(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, c := range s {
		switch {
		case c == '/' && j.chance(j.escapeOdd):
			b.WriteString(`\/`)
		case c > 0xffff && j.chance(j.escapeOdd):
			high, low := utf16.EncodeRune(c)
			fmt.Fprintf(&b, `\u%04x\u%04x`, high, low)
		case (c == '"' || c == '\\' || c < 0x20) && j.chance(j.rawControl):
			b.WriteRune(c)
		case c == '"' || c == '\\':
			b.WriteByte('\\')
			b.WriteRune(c)
		case c == '\n' && j.chance(50):
			b.WriteString(`\n`)
		case c == '\t' && j.chance(50):
			b.WriteString(`\t`)
		case c < 0x20 || c <= 0xffff && j.chance(j.escapeAny):
			fmt.Fprintf(&b, j.of(`\u%04x`, `\u%04X`), c)
		case c >= 0x7f && c <= 0x9f && j.chance(60):
			fmt.Fprintf(&b, `\u%04x`, c)
		default:
			b.WriteRune(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}

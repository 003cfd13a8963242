package main

import (
	"encoding/json"
	"errors"
	"io"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	"tags.cncf.io/container-device-interface/specs-go"
)

// freedom is why another library may treat a text differently, as narrow as can be told: `traits` as
// the test vectors define them, and the entry of differences.json that is the reason.
type freedom struct {
	traits []string
	cause  string
	isJSON bool
}

func (f *freedom) allow(trait, cause string) {
	if !slices.Contains(f.traits, trait) {
		f.traits = append(f.traits, trait)
	}
	if f.cause == "" {
		f.cause = cause
	}
}

// classify looks at a text of which the reference's verdict is known.
func classify(file, content string, accepted bool) freedom {
	f := freedom{isJSON: filepath.Ext(file) == ".json"}
	if f.isJSON && !json.Valid([]byte(content)) {
		if accepted {
			trimmed := strings.TrimLeft(content, " \t\r\n\ufeff")
			if strings.HasPrefix(trimmed, "{") || strings.HasPrefix(trimmed, "#") {
				f.allow("loose-json", "loose-json")
			} else {
				f.allow("yaml", "yaml-in-json")
			}
		}
		return f
	}
	var document yaml.Node
	decoder := yaml.NewDecoder(strings.NewReader(content))
	if err := decoder.Decode(&document); err != nil {
		if f.isJSON {
			f.traits = append(f.traits, "valid-json-refused")
		}
		return f
	}
	if !accepted {
		return f
	}
	if f.isJSON && strings.Contains(content, "\u0085") {
		f.allow("yaml-folding", "folded-line-break")
	}
	if !f.isJSON {
		if oddLineBreak.MatchString(content) {
			f.allow("yaml", "odd-line-break")
		}
		var next yaml.Node
		if err := decoder.Decode(&next); err != nil && !errors.Is(err, io.EOF) {
			f.allow("yaml", "text-behind-document")
		}
		if bareTag.MatchString(content) {
			f.allow("yaml", "explicit-tag")
		}
		f.syntax(&document, content)
	}
	if len(document.Content) == 1 {
		f.walk(document.Content[0], reflect.TypeOf(specs.Spec{}), 0)
	}
	return f
}

// A carriage return alone, and the Unicode line breaks.
var oddLineBreak = regexp.MustCompile("\r([^\n]|$)|[\u0085\u2028\u2029]")

// The header of a folded block that keeps its last line breaks.
var keptBreaks = regexp.MustCompile(`>[0-9]?\+`)

// A number that the reference reads since it cuts off the prefix first.
var minusInside = regexp.MustCompile(`^0[bo][-+]`)

// The tag "!", which leaves no trace in a node.
var bareTag = regexp.MustCompile(`(?m)(^|[\s\[{,])!(\s|[,\]}]|$)`)

// syntax looks for ways to write a node that are not in common use.
func (f *freedom) syntax(node *yaml.Node, content string) {
	usual := map[yaml.Kind]string{yaml.ScalarNode: "!!str", yaml.MappingNode: "!!map", yaml.SequenceNode: "!!seq"}
	if node.Style&yaml.TaggedStyle != 0 && node.ShortTag() != usual[node.Kind] {
		f.allow("yaml", "explicit-tag")
	}
	if node.Style&yaml.DoubleQuotedStyle != 0 && strings.ContainsAny(node.Value, "\u0085\u00a0") &&
		(strings.Contains(content, `\N`) || strings.Contains(content, `\_`)) {
		f.allow("yaml", "escape")
	}
	if node.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0 && (node.Anchor != "" || node.Style&yaml.TaggedStyle != 0) {
		f.allow("yaml", "anchored-block")
	}
	if node.Style&yaml.FoldedStyle != 0 && strings.HasSuffix(node.Value, "\n") && keptBreaks.MatchString(content) {
		f.allow("yaml", "kept-breaks")
	}
	if node.Kind == yaml.ScalarNode && node.Style == 0 && strings.HasSuffix(node.Value, ":") {
		f.allow("yaml", "colon-at-end")
	}
	for _, child := range node.Content {
		f.syntax(child, content)
	}
}

// walk looks for what only the reference's decoder takes for a value of the type.
func (f *freedom) walk(node *yaml.Node, want reflect.Type, depth int) {
	if depth > 64 {
		return
	}
	if node.Kind == yaml.AliasNode {
		node = node.Alias
	}
	if want.Kind() == reflect.Pointer {
		want = want.Elem()
	}
	if node.Kind == yaml.ScalarNode {
		f.scalar(node, want)
		return
	}
	switch want.Kind() {
	case reflect.Slice:
		for _, item := range node.Content {
			if isNull(item) {
				f.allow("coercion", "null-entry")
			} else {
				f.walk(item, want.Elem(), depth+1)
			}
		}
	case reflect.Map:
		f.members(node, func(string) (reflect.Type, bool) { return want.Elem(), true }, want, depth)
	case reflect.Struct:
		f.members(node, func(key string) (reflect.Type, bool) {
			for i := range want.NumField() {
				field := want.Field(i)
				if name, _, _ := strings.Cut(field.Tag.Get("yaml"), ","); name == key {
					return field.Type, true
				}
			}
			return nil, false
		}, want, depth)
	}
}

func (f *freedom) members(node *yaml.Node, member func(string) (reflect.Type, bool), want reflect.Type, depth int) {
	for i := 0; i+1 < len(node.Content); i += 2 {
		key, item := node.Content[i], node.Content[i+1]
		if key.Kind == yaml.AliasNode {
			key = key.Alias
		}
		switch {
		case isMerge(key):
			sources := []*yaml.Node{item}
			if item.Kind == yaml.SequenceNode {
				sources = item.Content
			}
			for _, source := range sources {
				f.walk(source, want, depth+1)
			}
			continue
		case isNull(key):
			f.allow("coercion", "null-key")
			continue
		case want.Kind() == reflect.Map && isNull(item):
			f.allow("coercion", "null-entry")
			continue
		case key.Kind == yaml.ScalarNode && key.ShortTag() != "!!str":
			f.allow("coercion", "scalar-type")
		}
		if t, ok := member(key.Value); ok {
			f.walk(item, t, depth+1)
		}
	}
}

func isNull(node *yaml.Node) bool {
	if node.Kind == yaml.AliasNode {
		node = node.Alias
	}
	return node.Kind == yaml.ScalarNode && node.ShortTag() == "!!null"
}

func isMerge(node *yaml.Node) bool {
	return node.Kind == yaml.ScalarNode && node.Value == "<<" &&
		(node.Tag == "" || node.Tag == "!" || node.ShortTag() == "!!merge")
}

func (f *freedom) scalar(node *yaml.Node, want reflect.Type) {
	tag := node.ShortTag()
	right := ""
	switch want.Kind() {
	case reflect.String:
		right = "!!str"
	case reflect.Bool:
		right = "!!bool"
	case reflect.Int, reflect.Int64, reflect.Uint32:
		right = "!!int"
	}
	const quoted = yaml.SingleQuotedStyle | yaml.DoubleQuotedStyle
	if f.isJSON && right == "!!str" && node.Style&quoted == 0 && tag == right {
		tag = "!!float" // too large a number for the reference, which then has it for text
	}
	if right == "!!int" && minusInside.MatchString(node.Value) {
		tag = right + "-like"
	}
	if right != "" && tag != right && tag != "!!null" {
		f.allow("coercion", "scalar-type")
	}
}

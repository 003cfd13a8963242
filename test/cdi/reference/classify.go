package main

import (
	"encoding/json"
	"path/filepath"
	"reflect"
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
	var f freedom
	isJSON := filepath.Ext(file) == ".json"
	if isJSON && !json.Valid([]byte(content)) {
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
	if err := yaml.NewDecoder(strings.NewReader(content)).Decode(&document); err != nil {
		if isJSON {
			f.traits = append(f.traits, "valid-json-refused")
		}
		return f
	}
	if !accepted {
		return f
	}
	if isJSON && strings.Contains(content, "\u0085") {
		f.allow("yaml-folding", "folded-line-break")
	}
	if len(document.Content) == 1 {
		f.walk(document.Content[0], reflect.TypeOf(specs.Spec{}), 0)
	}
	return f
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
	if right != "" && tag != right && tag != "!!null" {
		f.allow("coercion", "scalar-type")
	}
}

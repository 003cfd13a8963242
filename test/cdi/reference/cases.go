package main

import (
	"fmt"
)

// testCase is a line of the output; cdi/testdata/README.md describes the fields.
type testCase struct {
	ID      string              `json:"id"`
	Group   string              `json:"group"`
	Title   string              `json:"title"`
	Op      string              `json:"op"`
	Text    *string             `json:"text,omitempty"`
	Args    []string            `json:"args,omitempty"`
	File    string              `json:"file,omitempty"`
	Dirs    []map[string]string `json:"dirs,omitempty"`
	Devices *[]string           `json:"devices,omitempty"`
	OCI     any                 `json:"oci,omitempty"`
	Host    map[string]any      `json:"host,omitempty"`
	Expect  result              `json:"expect"`
	Traits  []string            `json:"traits,omitempty"`
	Cause   string              `json:"cause,omitempty"`
}

type result map[string]any

func (r result) ok() bool      { return r["ok"] == true }
func (r result) crashed() bool { return r["crash"] == true }

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func failed(err error) result { return result{"ok": false, "error": err.Error()} }

// guard makes a panic of the reference a result.
func guard(call func() result) (r result) {
	defer func() {
		if p := recover(); p != nil {
			r = result{"ok": false, "crash": true, "error": fmt.Sprint(p)}
		}
	}()
	return call()
}

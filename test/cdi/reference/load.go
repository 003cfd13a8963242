package main

import (
	"encoding/json"
	"errors"
	"io"

	"tags.cncf.io/container-device-interface/pkg/cdi"
)

// load prints {"devices": [...], "errors": {path: [text]}} and fails if there are errors.
func load(out io.Writer, dirs []string) error {
	if len(dirs) == 0 {
		return errors.New("load: no directories given")
	}
	cache, err := cdi.NewCache(cdi.WithAutoRefresh(false), cdi.WithSpecDirs(dirs...))
	if err != nil {
		return err
	}
	result := struct {
		Devices []string            `json:"devices"`
		Errors  map[string][]string `json:"errors"`
	}{append([]string{}, cache.ListDevices()...), map[string][]string{}}
	for path, list := range cache.GetErrors() {
		for _, e := range list {
			result.Errors[path] = append(result.Errors[path], e.Error())
		}
	}
	encoder := json.NewEncoder(out)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(result); err != nil {
		return err
	}
	if len(result.Errors) > 0 {
		return errors.New("not every file was loaded")
	}
	return nil
}

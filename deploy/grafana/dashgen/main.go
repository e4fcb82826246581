// Dashgen writes the Grafana dashboards of the fabric. What they show is in
// [dashboards], one function each; here is how Grafana wants it written. Go generate
// runs it in its folder; the files are checked in, and a test fails when they are
// not what it would write, or ask for what no broker or worker measures.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

//go:generate go run .

func main() {
	if err := generate("../dashboards"); err != nil {
		fmt.Fprintln(os.Stderr, "dashgen:", err)
		os.Exit(1)
	}
}

// generate writes every dashboard into dir.
func generate(dir string) error {
	for _, d := range dashboards() {
		data, err := json.Marshal(d.model(), json.Deterministic(true), jsontext.WithIndent("  "))
		if err != nil {
			return fmt.Errorf("%s: %w", d.name, err)
		}
		if err := os.WriteFile(filepath.Join(dir, d.name+".json"), append(data, '\n'), 0o644); err != nil {
			return fmt.Errorf("writing a dashboard: %w", err)
		}
	}
	return nil
}

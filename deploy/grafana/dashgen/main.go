// Dashgen writes the Grafana dashboards of the fabric. [dashboards] defines their
// contents, with one function per dashboard; model.go converts them to Grafana's JSON.
// Go generate runs it in its folder. A test compares the checked-in files with its
// output, and their queries with the metrics of brokers and workers.
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

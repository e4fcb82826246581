package hooksyaml_test

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/schema/hooksyaml"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// conditions replaces the compiler of conditions: it does not know tool_imput, and
// rejects every NO.
func conditions(s string) error {
	var faults schema.ConditionFaults
	for i, line := range strings.Split(s, "\n") {
		before := 0
		for {
			at := strings.Index(line[before:], "tool_imput")
			if at < 0 {
				break
			}
			faults = append(faults, schema.ConditionFault{
				Line: i + 1, Column: utf8.RuneCountInString(line[:before+at]) + 1,
				Message: "there is no field tool_imput", Hint: "did you mean tool_input?",
			})
			before += at + 1
		}
	}
	if len(faults) > 0 {
		return faults
	}
	if strings.Contains(s, "NO") {
		return errors.New("it says NO\n | NO\n | ^")
	}
	return nil
}

// compilers replaces all compilers.
func compilers() hooksyaml.Options {
	return hooksyaml.Options{CheckCondition: conditions, CheckExpression: func(option, expr string) error {
		if option != "deny" && option != "ask" && option != "reason" {
			return fmt.Errorf("there is no option %q", option)
		}
		return conditions(expr)
	}}
}

func golden(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), got); d != "" {
		t.Errorf("%s (-want +got):\n%s", file, d)
	}
}

func files(t *testing.T, pattern string) []string {
	t.Helper()
	names, err := filepath.Glob(pattern)
	if err != nil || len(names) == 0 {
		t.Fatalf("no files %s: %v", pattern, err)
	}
	return names
}

func TestFaultyFiles(t *testing.T) {
	names := files(t, "testdata/faulty/*.yaml")
	if len(names) < 60 {
		t.Errorf("only %d faulty files", len(names))
	}
	for _, name := range names {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".yaml"), func(t *testing.T) {
			data, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			doc, err := hooksyaml.Read(filepath.Base(name), data, compilers())
			if doc != nil || err == nil {
				t.Fatalf("the file was read: %+v", doc)
			}
			golden(t, strings.TrimSuffix(name, ".yaml")+".golden", err.Error()+"\n")
		})
	}
}

func TestGoodFiles(t *testing.T) {
	for _, name := range files(t, "testdata/good/*.yaml") {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".yaml"), func(t *testing.T) {
			data, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			doc, err := hooksyaml.Read(filepath.Base(name), data, compilers())
			if err != nil {
				t.Fatal(err)
			}
			golden(t, strings.TrimSuffix(name, ".yaml")+".golden", rendered(t, doc))
			sound(t, doc)
		})
	}
}

// rendered returns a configuration as JSON, without the hooks of presets, and the
// warnings below it.
func rendered(t *testing.T, doc *hooksyaml.Document) string {
	t.Helper()
	config := doc.Config
	config.Hooks = wrote(doc)
	raw, err := schema.Marshal(config)
	if err != nil {
		t.Fatal(err)
	}
	v := jsontext.Value(raw)
	if err := v.Indent(jsontext.WithIndent("  ")); err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	b.Write(v)
	b.WriteByte('\n')
	for _, w := range doc.Warnings {
		b.WriteString(w.String() + "\n")
	}
	return b.String()
}

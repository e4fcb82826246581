package gen

import (
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"pgregory.net/rapid"

	"github.com/hookfabric/hookfabric/bus/internal/model"
	"github.com/hookfabric/hookfabric/schema"
)

// A Table is a script as data: the possible answers of each hook, by name. The answer depends only
// on what the hook sees, so that a hook that gets the wrong input is detected.
type Table map[string][]model.Answer

// Tables draws answers for every hook of a configuration.
func Tables(cfg schema.Config) *rapid.Generator[Table] {
	if len(cfg.Hooks) == 0 {
		return rapid.Just(Table{})
	}
	return rapid.Custom(func(t *rapid.T) Table {
		table := Table{}
		for _, h := range cfg.Hooks {
			table[h.Name] = rapid.SliceOfN(Answers(h.Event), 1, 2).Draw(t, h.Name)
		}
		return table
	})
}

// Script answers from the table, as a [model.Script]. It is safe for concurrent use.
func (b Table) Script(h schema.Hook, input schema.Event) model.Answer {
	answers := b[h.Name]
	if len(answers) == 0 {
		return model.Answer{Kind: schema.OK}
	}
	sum := fnv.New32a()
	for _, v := range []jsontext.Value{input.ToolInput, input.ToolOutput, input.Message, input.Response} {
		v = v.Clone()
		if err := v.Canonicalize(); err != nil {
			v = nil // absent, in one of its spellings
		}
		_, _ = sum.Write(append(v, 0))
	}
	return answers[int(sum.Sum32()%uint32(len(answers)))]
}

// GoString returns the table for the log of a failed property, with long texts cut.
func (b Table) GoString() string {
	var s strings.Builder
	for _, name := range slices.Sorted(maps.Keys(b)) {
		for _, a := range b[name] {
			fmt.Fprintf(&s, "\n\t%s: %#v", name, a)
		}
	}
	return s.String()
}

// GoString returns the case for the log of a failed property.
func (c Case) GoString() string {
	return fmt.Sprintf("\nconfig: %s\nevent: %s\nanswers: %#v", shown(c.Config), shown(c.Event), c.Table)
}

func shown(v any) string {
	text, err := schema.Marshal(v)
	if err != nil {
		return fmt.Sprintf("%+v", v)
	}
	return string(text)
}

func messages() []jsontext.Value {
	return []jsontext.Value{jsontext.Value(`"done"`), jsontext.Value(`"thinking"`)}
}

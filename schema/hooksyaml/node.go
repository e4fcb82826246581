package hooksyaml

import (
	"maps"
	"math"
	"slices"
	"strconv"

	"go.yaml.in/yaml/v4"

	"github.com/hookfabric/hookfabric/schema"
)

func scalar(tag, value string) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: tag, Value: value}
}

// list returns a list of texts on one line.
func list(items []string) *yaml.Node {
	n := &yaml.Node{Kind: yaml.SequenceNode, Style: yaml.FlowStyle}
	for _, s := range items {
		n.Content = append(n.Content, scalar("!!str", s))
	}
	return n
}

// A mapping is a mapping under construction. Empty values are not added.
type mapping struct{ content []*yaml.Node }

func (m mapping) node() *yaml.Node {
	n := &yaml.Node{Kind: yaml.MappingNode, Content: m.content}
	if len(m.content) == 0 {
		n.Style = yaml.FlowStyle
	}
	return n
}

func (m *mapping) add(key string, value *yaml.Node) {
	if value.Kind == yaml.SequenceNode && len(value.Content) == 0 {
		value.Style = yaml.FlowStyle
	}
	m.content = append(m.content, scalar("!!str", key), value)
}

func (m *mapping) text(key, value string) {
	if value != "" {
		m.add(key, scalar("!!str", value))
	}
}

func (m *mapping) number(key string, value int) {
	if value != 0 {
		m.add(key, scalar("!!int", strconv.Itoa(value)))
	}
}

// flag adds a boolean that differs from its default.
func (m *mapping) flag(key string, value, otherwise bool) {
	if value != otherwise {
		m.add(key, boolean(value))
	}
}

func (m *mapping) list(key string, items []string) {
	if len(items) > 0 {
		m.add(key, list(items))
	}
}

// object adds the keys of values in alphabetical order.
func object[V any](m *mapping, key string, values map[string]V) {
	if len(values) > 0 {
		m.add(key, members(values))
	}
}

func members[V any](values map[string]V) *yaml.Node {
	var inner mapping
	for _, k := range slices.Sorted(maps.Keys(values)) {
		inner.add(k, value(values[k]))
	}
	return inner.node()
}

func (m *mapping) tls(t schema.TLS) {
	var inner mapping
	inner.text("ca", t.CA)
	inner.text("cert", t.Cert)
	inner.text("key", t.Key)
	inner.text("server_name", t.ServerName)
	if len(inner.content) > 0 {
		m.add("tls", inner.node())
	}
}

func boolean(yes bool) *yaml.Node { return scalar("!!bool", strconv.FormatBool(yes)) }

// value returns one value of options.
func value(v any) *yaml.Node {
	switch v := v.(type) {
	case string:
		return scalar("!!str", v)
	case bool:
		return boolean(v)
	case float64:
		return float(v)
	case map[string]any:
		return members(v)
	case []any:
		n := &yaml.Node{Kind: yaml.SequenceNode}
		for _, item := range v {
			n.Content = append(n.Content, value(item))
		}
		if !slices.ContainsFunc(n.Content, func(n *yaml.Node) bool { return n.Kind != yaml.ScalarNode }) {
			n.Style = yaml.FlowStyle
		}
		return n
	}
	return scalar("!!null", "null")
}

func float(f float64) *yaml.Node {
	if f == math.Trunc(f) && math.Abs(f) <= exact {
		return scalar("!!int", strconv.FormatFloat(f, 'f', 0, 64))
	}
	return scalar("!!float", strconv.FormatFloat(f, 'g', -1, 64))
}

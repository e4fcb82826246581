package hooksyaml

import (
	"fmt"
	"regexp"
	"strconv"

	"go.yaml.in/yaml/v4"
)

var pythonKeys = []string{"interpreter", "hosts", "memory", "recycle"}

// The limits of Python hosts. A smaller memory is most likely a number of megabytes
// without its unit.
const (
	maxHosts    = 64
	leastMemory = 16 << 20
	mostMemory  = 1 << 40
	maxRecycle  = 1_000_000_000
)

// python reads the settings of Python hosts.
func (r *reader) python(e entry) {
	if e.isNull() {
		return
	}
	entries, _ := r.mapping(e.value, "python", "write interpreter:, hosts:, memory: or recycle: below it")
	p := &r.config.Python
	var foreign []entry
	for _, e := range entries {
		switch e.key {
		case "interpreter":
			p.Interpreter, _ = r.word(e.value, "interpreter", "write a program's name or path, such as ./venv/bin/python3")
		case "hosts":
			p.Hosts = r.whole(e, 1, maxHosts, fmt.Sprintf("write how many processes a worker keeps, from 1 to %d", maxHosts))
		case "memory":
			p.Memory = r.memory(e.value)
		case "recycle":
			p.Recycle = r.whole(e, 0, maxRecycle, fmt.Sprintf("write after how many calls a process is replaced, up to %d, or 0 for never", maxRecycle))
		default:
			foreign = append(foreign, e)
		}
	}
	r.foreign(foreign, "python", pythonKeys, false)
}

// whole reads a whole number within limits.
func (r *reader) whole(e entry, least, most int, hint string) int {
	if r.octal(e.value) {
		return 0
	}
	n, err := strconv.Atoi(e.value.Value)
	if e.value.Tag != "!!int" || err != nil || n < least || n > most {
		r.fault(e.value, fmt.Sprintf("%s is %s", e.key, describe(e.value)), hint)
		return 0
	}
	return n
}

var (
	sized = regexp.MustCompile(`^([0-9]+(?:\.[0-9]+)?) ?([KMGT]i?B)$`)
	units = map[string]float64{"KB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}
)

// memory reads a number of bytes, or a number with a unit.
func (r *reader) memory(n *yaml.Node) int64 {
	const hint = "write it with its unit, such as 512MiB or 1GiB"
	var bytes float64
	switch m := sized.FindStringSubmatch(n.Value); {
	case n.Tag == "!!int":
		whole, err := strconv.ParseInt(n.Value, 10, 64)
		if err != nil {
			whole = 0
		}
		bytes = float64(whole)
	case n.Tag == "!!str" && m != nil:
		bytes, _ = strconv.ParseFloat(m[1], 64)
		bytes *= units[m[2]]
	default:
		r.fault(n, fmt.Sprintf("memory is %s, which is not a size", describe(n)), hint)
		return 0
	}
	if bytes < leastMemory || bytes > mostMemory {
		r.fault(n, fmt.Sprintf("memory is %s; it must be between 16MiB and 1TiB", clip(n.Value)), hint)
		return 0
	}
	return int64(bytes)
}

package workers_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/workers"
)

// A looker records the folders that it gets.
type looker struct{ dirs []string }

func (l *looker) Load(_ schema.Hook, at workers.Site) (workers.Handler, error) {
	l.dirs = at.Dirs
	return workers.HandlerFunc(allows), nil
}

func (l *looker) Close() error { return nil }

func TestFoldersOfHandlers(t *testing.T) {
	for _, c := range []struct {
		name string
		own  []string
		cfg  schema.Config
		want []string
	}{
		{"in the folder of the configuration's file", nil, schema.Config{Dir: "/conf"}, []string{"/conf"}},
		{"in the worker's own folders instead", []string{"/hooks", "/more"}, schema.Config{Dir: "/conf"}, []string{"/hooks", "/more"}},
		{
			"then in python_path, as it lies there", nil, schema.Config{Dir: "/conf", PythonPath: []string{"./policies", "/opt/hooks"}},
			[]string{"/conf", "/conf/policies", "/opt/hooks"},
		},
		{
			"then in python_path below each of the worker's own", []string{"/hooks", "/more"},
			schema.Config{Dir: "/conf", PythonPath: []string{"policies"}}, []string{"/hooks", "/more", "/hooks/policies", "/more/policies"},
		},
		{"nowhere", nil, schema.Config{PythonPath: []string{"policies"}}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			var l looker
			w := workers.New(workers.Options{Name: "w", Pools: []string{"p"}, Dirs: c.own, Runners: map[schema.Kind]workers.Runner{schema.Builtin: &l}})
			c.cfg.Version, c.cfg.Hooks = 1, []schema.Hook{hook("looks")}
			w.Load(c.cfg)
			if d := cmp.Diff(c.want, l.dirs); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

package daemon

import "testing"

func TestTheSocketIsNamedOrInTheRuntimeFolderOrInTheStateFolder(t *testing.T) {
	for name, c := range map[string]struct {
		place      Place
		runtimeDir string
		want       string
	}{
		"--socket names it":                         {Place{State: "/s", At: "/x/sock"}, "/run/user/1", "/x/sock"},
		"a login has a runtime folder":              {Place{State: "/s"}, "/run/user/1", "/run/user/1/hookfabric/agentshim.sock"},
		"without a login it is in the state folder": {Place{State: "/s"}, "", "/s/agentshim.sock"},
		"a relative runtime folder does not count":  {Place{State: "/s"}, "run", "/s/agentshim.sock"},
		"without a state folder there is no socket": {Place{}, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("XDG_RUNTIME_DIR", c.runtimeDir)
			if got := c.place.Socket(); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

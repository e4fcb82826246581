package early

// A command is a command line that is understood.
type command struct {
	runtime, event, agent, unreachable, workspaces string
	socket, state                                  string
	timeout                                        int64 // nanoseconds
}

// Nanoseconds of what durations are written in.
const (
	millisecond = int64(1_000_000)
	second      = 1000 * millisecond
)

// parse reads a command line without the program's name. ok is false if there is
// anything in it that is not the simplest that it could be.
func parse(args []string) (c command, ok bool) {
	if len(args) == 0 || args[0] != "hook" {
		return c, false
	}
	c.timeout = 60 * second
	for i := 1; i < len(args); i++ {
		name, value, joined := cut(args[i])
		switch {
		case name == "--start" && !joined:
			continue // where no daemon is, the program starts one
		case !joined && i+1 < len(args):
			i++
			value = args[i]
		case !joined:
			return c, false
		}
		if !c.set(name, value) {
			return c, false
		}
	}
	if c.unreachable == "" {
		c.unreachable = "allow"
	}
	return c, c.runtime != "" && (c.unreachable == "allow" || c.unreachable == "deny")
}

// set takes one flag in.
func (c *command) set(name, value string) (ok bool) {
	switch name {
	case "--runtime":
		c.runtime = value
	case "--event":
		c.event = value
	case "--agent":
		c.agent = value
	case "--unreachable":
		c.unreachable = value
	case "--workspaces":
		c.workspaces = value
		return value == "" || value[0] == '/' // any other is the program's to find
	case "--socket":
		c.socket = value
		return absolute(value) && clean(value)
	case "--state":
		c.state = value
		return absolute(value) && clean(value)
	case "--timeout":
		c.timeout, ok = duration(value)
		return ok
	default:
		return false
	}
	return true
}

// cut parts --name=value.
func cut(arg string) (name, value string, joined bool) {
	for i := range len(arg) {
		if arg[i] == '=' {
			return arg[:i], arg[i+1:], true
		}
	}
	return arg, "", false
}

// duration reads a whole number of seconds, milliseconds or minutes, which is
// how an installation writes it.
func duration(s string) (n int64, ok bool) {
	i := 0
	for ; i < len(s) && s[i] >= '0' && s[i] <= '9' && i < 7; i++ {
		n = 10*n + int64(s[i]-'0')
	}
	units := map[string]int64{"ms": millisecond, "s": second, "m": 60 * second}
	unit := units[s[i:]]
	return n * unit, n > 0 && i > 0 && unit > 0
}

// left is how much of a time is left for the answer: a hop's margin less.
func left(of int64) int64 {
	margin := max(of/20, 20*millisecond)
	return of - min(margin, of/2)
}

// surroundings are the variables that say where the daemon is and which fabric
// is meant. ok is false if there are others of ours.
type surroundings struct {
	socket, nats, creds string
	agent               string
	env                 []string // name, value, name, value…
}

// environment lists the variables that dialects and exchanges may look at.
var environment = [...]string{"CLAUDE_PROJECT_DIR", "CLAUDE_CODE_ENTRYPOINT", "CLAUDE_CODE_SESSION_ATTENDED", "GEMINI_CWD", "GEMINI_PROJECT_DIR",
	"CURSOR_VERSION", "CURSOR_PROJECT_DIR", "COPILOT_CLI", "COPILOT_CLI_BINARY_VERSION", "COPILOT_PROJECT_DIR", "CODEX_HOME", "QWEN_CODE_AGENT_ID",
	TraceParent, TraceState}

// The variables in which a runtime hands on its place in a trace.
const (
	TraceParent = "TRACEPARENT"
	TraceState  = "TRACESTATE"
)

// Environment is that list. It is here because here it is needed first.
func Environment() []string { return environment[:] }

// look finds the way of a command by the environment.
func look(c *command, environ []string) (s surroundings, ok bool) {
	var runtimeDir, stateHome, home, state, socket string
	// Of two for one name the first counts, as for the program.
	for i := len(environ) - 1; i >= 0; i-- { //nolint:modernize // package slices is initialised later
		name, value, _ := cut(environ[i])
		switch name {
		case "XDG_RUNTIME_DIR":
			runtimeDir = value
		case "XDG_STATE_HOME":
			stateHome = value
		case "HOME":
			home = value
		case "HOOKFABRIC_STATE":
			state = value
		case "HOOKFABRIC_SOCKET":
			socket = value
		case "HOOKFABRIC_NATS":
			s.nats = value
		case "HOOKFABRIC_CREDS":
			s.creds = value
		case "HOOKFABRIC_AGENT":
			s.agent = value
		case "HOOKFABRIC_LOG", "HOOKFABRIC_START", "HOOKFABRIC_TOKEN",
			"HOOKFABRIC_TLS_CA", "HOOKFABRIC_TLS_CERT", "HOOKFABRIC_TLS_KEY": // the daemon has its own
		default:
			if value == "" {
				continue
			}
			if len(name) > 11 && name[:11] == "HOOKFABRIC_" {
				return s, false // what it means is for the program to say
			}
			for _, known := range environment {
				if name == known {
					s.env = append(s.env, name, value)
				}
			}
		}
	}
	if c.state != "" {
		state = c.state
	}
	switch {
	case c.socket != "":
		s.socket = c.socket
	case socket != "":
		s.socket = socket
	case absolute(runtimeDir):
		s.socket = runtimeDir + "/hookfabric/agentshim.sock"
	case state != "":
		s.socket = state + "/agentshim.sock"
	case absolute(stateHome):
		s.socket = stateHome + "/hookfabric/agentshim.sock"
	case absolute(home):
		s.socket = home + "/.local/state/hookfabric/agentshim.sock"
	}
	return s, absolute(s.socket) && clean(s.socket) && (s.creds == "" || absolute(s.creds) && clean(s.creds))
}

func absolute(path string) bool { return path != "" && path[0] == '/' }

// clean reports whether a path is written in the only way.
func clean(path string) bool {
	for i := 1; i < len(path); i++ {
		if path[i-1] == '/' && (path[i] == '/' || path[i] == '.') && !(path[i] == '.' && plain(path[i:])) {
			return false
		}
	}
	return len(path) > 1 && path[len(path)-1] != '/'
}

// plain reports whether a path's next name, which begins with a dot, is more than
// one or two of them.
func plain(rest string) bool {
	n := 0
	for n < len(rest) && rest[n] != '/' {
		n++
	}
	return rest[:n] != "." && rest[:n] != ".."
}

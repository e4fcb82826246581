package action

import (
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// hosts adds the hosts in the arguments of a command.
func (w *walker) hosts(name string, args []field) {
	for _, f := range args {
		w.out.urls(f.text)
	}
	operands := slices.DeleteFunc(texts(args), func(a string) bool { return strings.HasPrefix(a, "-") || strings.Contains(a, "://") })
	switch name {
	case "ssh", "mosh", "sftp", "ssh-copy-id", "sshfs", "autossh":
		w.sshHosts(args)
	case "scp", "rsync", "git":
		for _, p := range operands {
			if host, _, ok := strings.Cut(p, ":"); ok && host != "" && !strings.ContainsAny(host, "/ =") {
				w.out.host(hostName(host))
			}
		}
	case "curl", "wget", "http", "https", "xh", "aria2c", "lynx", "ping", "ping6", "dig", "nslookup", "host", "telnet", "nc", "ncat", "netcat", "nmap", "whois", "ftp", "tftp", "traceroute", "socat":
		for _, p := range addresses(name, args) {
			w.out.host(hostName(p))
		}
	case "openssl":
		for i, f := range args {
			if f.text == "-connect" && i+1 < len(args) {
				w.out.host(hostName(args[i+1].text))
			}
		}
	}
}

// addresses returns the operands of a network program that are hosts.
func addresses(name string, args []field) []string {
	options := prefix{short: "oXHdFuATbcDEKmwUrxePQCyYzt", long: []string{
		"output", "request", "header", "data", "data-binary", "data-raw", "data-urlencode", "form", "user", "user-agent", "upload-file", "cookie", "cookie-jar", "max-time",
		"connect-timeout", "proxy", "referer", "cacert", "cert", "key", "output-document", "post-data", "post-file", "config", "retry",
	}}
	switch name {
	case "curl":
	case "wget":
		options.short = "OoPUieaARDIXtTQw"
	default:
		options = prefix{short: "cwisptWXqQ"}
	}
	if name == "socat" {
		return socat(args)
	}
	var hosts []string
	for i := 0; i < len(args); i++ {
		arg := args[i].text
		if len(arg) > 1 && arg[0] == '-' {
			i += options.width(arg) - 1
			continue
		}
		if !strings.Contains(arg, "://") && isHost(arg) {
			hosts = append(hosts, arg)
		}
	}
	return hosts
}

// socat returns the hosts of addresses such as TCP:host:port.
func socat(args []field) (hosts []string) {
	for _, f := range args {
		kind, rest, ok := strings.Cut(f.text, ":")
		if ok && slices.Contains([]string{"tcp", "tcp4", "tcp6", "udp", "openssl", "ssl", "tcp-connect", "sctp"}, strings.ToLower(kind)) {
			host, _, _ := strings.Cut(rest, ":")
			hosts = append(hosts, host)
		}
	}
	return hosts
}

// sshHosts adds the destination of ssh, and the hosts that it goes through.
func (w *walker) sshHosts(args []field) {
	options := prefix{short: "BbcDEeFIiJLlmOopQRSWwP"}
	for i := 0; i < len(args); i++ {
		arg := args[i].text
		if len(arg) < 2 || arg[0] != '-' {
			host, _, _ := strings.Cut(arg, ":")
			w.out.host(hostName(host))
			return
		}
		n := options.width(arg)
		if arg[1] == 'J' {
			value := arg[2:]
			if n == 2 && i+1 < len(args) {
				value = args[i+1].text
			}
			for jump := range strings.SplitSeq(value, ",") {
				w.out.host(hostName(jump))
			}
		}
		i += n - 1
	}
}

// Host returns the host of a URL or of an authority such as user@host:port, in lower case.
func Host(text string) string {
	if _, rest, ok := strings.Cut(text, "://"); ok {
		text = rest
	}
	return hostName(text)
}

// Inside reports whether an address is in a network, such as 10.0.0.0/8. Names are in none.
func Inside(address, network string) bool {
	a, err := netip.ParseAddr(address)
	if err != nil {
		return false
	}
	n, err := netip.ParsePrefix(network)
	return err == nil && n.Contains(a.Unmap())
}

// urls adds the hosts of the URLs in a text.
func (a *Action) urls(text string) {
	const maxURLs = 100
	for range maxURLs {
		i := strings.Index(text, "://")
		if i < 0 {
			return
		}
		begin := i
		for begin > 0 && isSchemeByte(text[begin-1]) {
			begin--
		}
		end := i + 3
		for end < len(text) && !strings.ContainsRune(" \t\n\"'<>|;&)`", rune(text[end])) {
			end++
		}
		if u, err := url.Parse(text[begin:end]); err == nil && u.Scheme != "file" {
			a.host(hostName(u.Host))
		} else if err != nil {
			authority, _, _ := strings.Cut(text[i+3:end], "/")
			a.host(hostName(authority))
		}
		text = text[end:]
	}
}

func isSchemeByte(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '+' || c == '-' || c == '.'
}

// isHost reports whether an argument without a scheme is a host, perhaps with a port and a path.
func isHost(arg string) bool {
	if len(arg) < 6 && strings.Trim(arg, "0123456789") == "" {
		return false // a port
	}
	name := hostName(arg)
	if name == "localhost" {
		return true
	}
	if _, err := netip.ParseAddr(name); err == nil {
		return true
	}
	for _, c := range []byte(name) {
		if !isSchemeByte(c) && c != '_' || c == '+' {
			return false
		}
	}
	return strings.Contains(strings.Trim(name, "."), ".")
}

// hostName returns the name or address in an authority: in lower case, without user, port, path and a
// final dot. Addresses in decimal, octal and hexadecimal forms become dotted.
func hostName(authority string) string {
	name := authority
	if i := strings.IndexAny(name, "/?#\\"); i >= 0 {
		name = name[:i]
	}
	if i := strings.LastIndexByte(name, '@'); i >= 0 {
		name = name[i+1:]
	}
	if rest, ok := strings.CutPrefix(name, "["); ok {
		name, _, _ = strings.Cut(rest, "]")
	} else if strings.Count(name, ":") == 1 {
		name, _, _ = strings.Cut(name, ":")
	}
	name = strings.TrimSuffix(strings.ToLower(name), ".")
	if plain, err := url.PathUnescape(name); err == nil {
		name = plain
	}
	if dotted, ok := numericAddress(name); ok {
		return dotted
	}
	return name
}

// numericAddress returns the dotted form of an IPv4 address with one to four numbers in any base, as
// the C library reads it.
func numericAddress(name string) (string, bool) {
	parts := strings.Split(name, ".")
	if len(parts) > 4 {
		return "", false
	}
	var sum uint64
	for i, part := range parts {
		n, err := strconv.ParseUint(octal(part), 0, 32)
		if err != nil || strings.Contains(part, "_") {
			return "", false
		}
		if last := i == len(parts)-1; last && n >= 1<<(8*(5-len(parts))) || !last && n > 255 {
			return "", false
		} else if last {
			sum |= n
		} else {
			sum |= n << (8 * (3 - i))
		}
	}
	return netip.AddrFrom4([4]byte{byte(sum >> 24), byte(sum >> 16), byte(sum >> 8), byte(sum)}).String(), true
}

// octal returns a number whose leading 0 means octal in the form of Go.
func octal(part string) string {
	if len(part) > 1 && part[0] == '0' && part[1] != 'x' && part[1] != 'X' {
		return "0o" + part[1:]
	}
	return part
}

package cond

import (
	"path"
	"strings"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"

	"github.com/hookfabric/hookfabric/schema/action"
	"github.com/hookfabric/hookfabric/schema/match"
	"github.com/hookfabric/hookfabric/schema/redact"
)

// helpers declares what policies need beside CEL's own functions:
//
//	path.under("/srv")       the path is that folder, or inside it
//	path.glob("/srv/*.env")  the text matches a glob, in which * is any text
//	address.inside("10.0.0.0/8")
//	text.host()              the host of a URL or of user@host:port
//	secrets.found(text)      the text has a secret of a known form
func helpers() []cel.EnvOption {
	of := func(name string, impl func(text, arg string) bool) cel.EnvOption {
		return cel.Function(name, cel.MemberOverload("string_"+name, []*cel.Type{cel.StringType, cel.StringType}, cel.BoolType,
			cel.BinaryBinding(func(text, arg ref.Val) ref.Val {
				return types.Bool(impl(string(text.(types.String)), string(arg.(types.String))))
			})))
	}
	return []cel.EnvOption{
		of("under", under), of("glob", globbed), of("inside", action.Inside),
		cel.Function("host", cel.MemberOverload("string_host", []*cel.Type{cel.StringType}, cel.StringType,
			cel.UnaryBinding(func(text ref.Val) ref.Val { return types.String(action.Host(string(text.(types.String)))) }))),
		cel.Function("secrets.found", cel.Overload("secrets_found", []*cel.Type{cel.StringType}, cel.BoolType,
			cel.UnaryBinding(func(text ref.Val) ref.Val { return types.Bool(redact.Found(string(text.(types.String)))) }))),
	}
}

// under reports whether a path is a folder or inside it.
func under(p, folder string) bool {
	p, folder = path.Clean(p), path.Clean(folder)
	return p == folder || folder == "/" && strings.HasPrefix(p, "/") || strings.HasPrefix(p, folder+"/")
}

// globbed reports whether a text matches a glob. A pattern that is not valid matches nothing.
func globbed(text, pattern string) bool {
	m, err := match.Compile(pattern)
	return err == nil && m.Match(text)
}

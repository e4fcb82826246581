package cond

import (
	"encoding/base64"
	"fmt"
	"time"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
)

// plain returns a value of CEL as a value for JSON. Bytes become base64, and times and durations
// texts.
func plain(v ref.Val) (any, error) {
	switch v := v.(type) {
	case types.Null:
		return nil, nil
	case types.Bool, types.Int, types.Uint, types.Double, types.String:
		return v.Value(), nil
	case types.Bytes:
		return base64.StdEncoding.EncodeToString([]byte(v)), nil
	case types.Timestamp:
		return v.Format(time.RFC3339Nano), nil
	case types.Duration:
		return v.Duration.String(), nil
	case *types.Optional:
		if !v.HasValue() {
			return nil, nil
		}
		return plain(v.GetValue())
	case traits.Mapper:
		return plainMap(v)
	case traits.Lister:
		return plainList(v)
	}
	return nil, fmt.Errorf("the expression has %s in its value, which JSON does not have", article(v.Type().TypeName()))
}

func plainMap(m traits.Mapper) (any, error) {
	out := make(map[string]any)
	for it := m.Iterator(); it.HasNext() == types.True; {
		key := it.Next()
		name, ok := key.Value().(string)
		if !ok {
			return nil, fmt.Errorf("the expression has a map with %s as a key; write texts", article(key.Type().TypeName()))
		}
		v, err := plain(m.Get(key))
		if err != nil {
			return nil, err
		}
		out[name] = v
	}
	return out, nil
}

func plainList(l traits.Lister) (any, error) {
	out := []any{}
	for it := l.Iterator(); it.HasNext() == types.True; {
		v, err := plain(it.Next())
		if err != nil {
			return nil, err
		}
		out = append(out, v)
	}
	return out, nil
}

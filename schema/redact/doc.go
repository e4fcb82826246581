// Package redact removes secrets from records and logs. [Text] and [Value] remove what has the
// form of a secret, such as a token or a private key. [Rules] remove what is at configured
// places. It cannot find a secret that looks like an ordinary word and is at a place without a
// rule.
//
// # Concurrency
//
// Several goroutines may use [Rules] and [Echoes], and call the functions.
//
// # Usage
//
//	rules, err := redact.Parse([]string{"tool_input.env.*", "**.authorization"})
//	if err != nil {
//		return err
//	}
//	echoes := rules.Clean(doc)      // removes the members' values from doc
//	line = echoes.Without(line)     // removes the same values from other text
package redact

package ratelimit

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// String returns the policy as text that ParsePolicy reads back, for example
// "token-bucket rate=10/1s burst=20". It is canonical: equal policies have
// equal text.
func (p Policy) String() string {
	s := p.spec()
	words := []string{s.algorithm.String()}
	if s.rate != (Rate{}) {
		words = append(words, "rate="+s.rate.String())
	}
	if word := limitWords[s.algorithm]; word != "" {
		words = append(words, word+"="+strconv.Itoa(s.limit))
	}
	if s.window != 0 {
		words = append(words, "window="+s.window.String())
	}
	if s.cells > 1 {
		words = append(words, "cells="+strconv.Itoa(s.cells))
	}
	if s.hasInitial {
		words = append(words, "initial="+strconv.Itoa(s.initial))
	}
	if s.intervalRefill {
		words = append(words, "refill=interval")
	}
	if s.immediateFirst {
		words = append(words, "release=immediate-first")
	}
	return strings.Join(words, " ")
}

// limitWords are the field's own words for a policy's limit.
var limitWords = map[Algorithm]string{
	AlgorithmTokenBucket:    "burst",
	AlgorithmLeakyBucket:    "capacity",
	AlgorithmSlidingLog:     "limit",
	AlgorithmFixedCounter:   "limit",
	AlgorithmSlidingCounter: "limit",
}

// MarshalText returns String, or the error of Validate.
func (p Policy) MarshalText() ([]byte, error) {
	if err := p.Validate(); err != nil {
		return nil, err
	}
	return []byte(p.String()), nil
}

// UnmarshalText is ParsePolicy; on an error p stays as it was.
func (p *Policy) UnmarshalText(text []byte) error {
	parsed, err := ParsePolicy(string(text))
	if err == nil {
		*p = parsed
	}
	return err
}

// maxPolicyText is longer than the text of any valid policy.
const maxPolicyText = 256

// ParsePolicy is the inverse of String. It also reads what people write for a
// token bucket, "10/s", "0.5/s", "100/m" (m is a minute), "5000/h" or
// "500/10s", which has a burst of max(1, ⌈n⌉). The policy it returns is valid.
// An error wraps ErrInvalidPolicy and names the offending word and its column,
// counted in bytes from 1.
func ParsePolicy(s string) (Policy, error) {
	if len(s) > maxPolicyText {
		return Policy{}, fmt.Errorf("%w: text has %d bytes: must be at most %d", ErrInvalidPolicy, len(s), maxPolicyText)
	}
	words := splitWords(s)
	if len(words) == 0 {
		return Policy{}, fmt.Errorf("%w: text is empty: want an algorithm or a rate", ErrInvalidPolicy)
	}
	first, fields := words[0], words[1:]
	var parsed spec
	if strings.Contains(first.text, "/") {
		rate, why := parseRate(first.text)
		if why == "" {
			_, why = rate.exact()
		}
		if why != "" {
			return Policy{}, first.invalid(why)
		}
		if len(fields) > 0 {
			return Policy{}, fields[0].invalid("nothing may follow a bare rate")
		}
		burst := math.Ceil(rate.units())
		if burst >= math.MaxInt {
			return Policy{}, first.invalid("so many units at once are more than an int holds")
		}
		parsed = TokenBucketPolicy(rate, int(max(1, burst))).spec()
	} else {
		algorithm := slices.Index(algorithmNames[:], first.text)
		if algorithm < 1 {
			return Policy{}, first.invalid("not an algorithm: want one of " + strings.Join(algorithmNames[1:], ", ") + ", or a rate")
		}
		parsed.algorithm = Algorithm(algorithm)
		if err := parsed.parseFields(fields, first); err != nil {
			return Policy{}, err
		}
	}
	policy := parsed.policy()
	if err := policy.Validate(); err != nil {
		return Policy{}, fmt.Errorf("policy %q: %w", s, err)
	}
	return policy, nil
}

func (s *spec) parseFields(fields []word, first word) error {
	switch s.algorithm {
	case AlgorithmUnlimited:
		s.limit = math.MaxInt
	case AlgorithmSlidingCounter:
		s.cells = 1
	}
	required := requiredFields(s.algorithm)
	seen := map[string]bool{}
	for _, field := range fields {
		name, value, found := strings.Cut(field.text, "=")
		set := s.setter(name)
		switch {
		case !found:
			return field.invalid("want name=value")
		case set == nil:
			return field.invalid("not a field of " + s.algorithm.String())
		case seen[name]:
			return field.invalid("given twice")
		}
		seen[name] = true
		if why := set(value); why != "" {
			return field.invalid(why)
		}
	}
	for _, name := range required {
		if !seen[name] {
			return first.invalid("needs " + strings.Join(required, " and ") + "; " + name + " is missing")
		}
	}
	return nil
}

func requiredFields(a Algorithm) []string {
	switch a {
	case AlgorithmTokenBucket, AlgorithmLeakyBucket:
		return []string{"rate", limitWords[a]}
	case AlgorithmSlidingLog, AlgorithmFixedCounter, AlgorithmSlidingCounter:
		return []string{"limit", "window"}
	}
	return nil
}

// setter returns what sets the named field of the algorithm and says why a
// value is wrong, or nil when the algorithm has no such field.
func (s *spec) setter(name string) func(value string) (why string) {
	switch {
	case slices.Contains(requiredFields(s.algorithm), name):
		switch name {
		case "rate":
			return func(v string) (why string) { s.rate, why = parseRate(v); return why }
		case "window":
			return func(v string) (why string) {
				d, err := time.ParseDuration(v)
				if s.window = d; err != nil {
					return "not a duration such as 1m30s"
				}
				return ""
			}
		}
		return wholeNumber(&s.limit)
	case name == "cells" && s.algorithm == AlgorithmSlidingCounter:
		return wholeNumber(&s.cells)
	case name == "initial" && s.algorithm == AlgorithmTokenBucket:
		s.hasInitial = true
		return wholeNumber(&s.initial)
	case name == "refill" && s.algorithm == AlgorithmTokenBucket:
		return onlyValue("interval", &s.intervalRefill)
	case name == "release" && s.algorithm == AlgorithmLeakyBucket:
		return onlyValue("immediate-first", &s.immediateFirst)
	}
	return nil
}

func wholeNumber(into *int) func(string) string {
	return func(v string) string {
		n, err := strconv.Atoi(v)
		if *into = n; err != nil {
			return "not a whole number"
		}
		return ""
	}
}

func onlyValue(want string, into *bool) func(string) string {
	return func(v string) string {
		if *into = v == want; !*into {
			return "want " + want
		}
		return ""
	}
}

// A word is a piece of a policy's text and its column, counted from 1.
type word struct {
	text   string
	column int
}

func (w word) invalid(why string) error {
	return fmt.Errorf("%w: word %q at column %d: %s", ErrInvalidPolicy, w.text, w.column, why)
}

func splitWords(s string) []word {
	var words []word
	for end := 0; ; {
		start := end
		for start < len(s) && isSpace(s[start]) {
			start++
		}
		if start == len(s) {
			return words
		}
		for end = start; end < len(s) && !isSpace(s[end]); {
			end++
		}
		words = append(words, word{s[start:end], start + 1})
	}
}

func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }

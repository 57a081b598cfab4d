// Httpserver is a web server with three limits on one endpoint: 10 requests
// per second for each user, 1000 per minute for each merchant and 500 per
// second in all. A request is charged to all three or, when one of them
// refuses, to none.
//
//	go run ./examples/httpserver -addr localhost:8080
//	curl -i -H 'X-User: ann' -H 'X-Merchant: shop' localhost:8080
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"math"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"github.com/seed4f92381c/ratelimit"
)

func main() {
	addr := flag.String("addr", "localhost:8080", "address to listen on")
	flag.Parse()

	if err := run(*addr); err != nil {
		log.Fatal(err)
	}
}

func run(addr string) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	listener, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	log.Printf("listening on http://%s", listener.Addr())
	return serve(ctx, listener, newLimits())
}

// serve answers requests until ctx ends, and then finishes those under way.
func serve(ctx context.Context, listener net.Listener, l *limits) error {
	server := &http.Server{Handler: l.limit(http.HandlerFunc(hello)), ReadHeaderTimeout: 5 * time.Second}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener) }()
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	err := server.Shutdown(ctx)
	if stopped := <-failed; !errors.Is(stopped, http.ErrServerClosed) {
		err = errors.Join(err, stopped)
	}
	return err
}

func hello(w http.ResponseWriter, r *http.Request) {
	if _, err := fmt.Fprintf(w, "hello %s\n", r.Header.Get("X-User")); err != nil {
		log.Print(err)
	}
}

// limits are the budgets of one endpoint.
type limits struct {
	users     *ratelimit.Keyed[string]
	merchants *ratelimit.Keyed[string]
	endpoint  ratelimit.Limiter
}

var (
	userPolicy     = ratelimit.TokenBucketPolicy(ratelimit.PerSecond(10), 10)
	merchantPolicy = ratelimit.TokenBucketPolicy(ratelimit.PerMinute(1000), 100)
	endpointPolicy = ratelimit.TokenBucketPolicy(ratelimit.PerSecond(500), 100)
)

func newLimits() *limits {
	return &limits{
		users:     ratelimit.Must(ratelimit.NewKeyed[string](userPolicy)),
		merchants: ratelimit.Must(ratelimit.NewKeyed[string](merchantPolicy)),
		endpoint:  ratelimit.Must(ratelimit.New(endpointPolicy)),
	}
}

// limit lets a request through to next when all of its budgets have room.
func (l *limits) limit(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// A client can write what it likes into these headers, and a new name
		// has a full budget. A real service takes both from what it has
		// authenticated, such as a session or an API key.
		user, merchant := r.Header.Get("X-User"), r.Header.Get("X-Merchant")
		if user == "" || merchant == "" {
			http.Error(w, "X-User and X-Merchant are required", http.StatusUnauthorized)
			return
		}
		all := ratelimit.All(l.users.For(user), l.merchants.For(merchant), l.endpoint)
		if d := all.Decide(1); !d.Allowed {
			w.Header().Set("Retry-After", retryAfter(d.RetryAfter))
			http.Error(w, "too many requests", http.StatusTooManyRequests)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// retryAfter is a wait in whole seconds, which is all that the header can say,
// rounded up so that obeying it succeeds.
func retryAfter(wait time.Duration) string {
	return strconv.FormatInt(max(1, int64(math.Ceil(wait.Seconds()))), 10)
}

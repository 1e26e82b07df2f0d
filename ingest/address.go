package ingest

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
)

// DefaultPort is Kafka's, of a broker that is named without one.
const DefaultPort = "9092"

// ErrUserInBroker says that the address of a broker holds more than a host and a
// port: a URL, or a user and perhaps a password before an @.
var ErrUserInBroker = errors.New("want HOST or HOST:PORT, no URL and nobody's name: who logs in is for --sasl, " +
	"--sasl-user and --sasl-password-file (the value is not shown, since it may hold a password)")

// Addresses returns brokers as HOST:PORT; a host without a port gets Kafka's,
// 9092. An IPv6 address with a port stands in brackets, without one it need not.
// Where one of the brokers holds an @ or //, the error is ErrUserInBroker and
// quotes none of them: a comma in a password may have made several of one URL.
func Addresses(brokers []string) ([]string, error) {
	for _, b := range brokers {
		if strings.Contains(b, "@") || strings.Contains(b, "//") {
			return nil, ErrUserInBroker
		}
	}
	all := make([]string, len(brokers))
	for i, b := range brokers {
		var err error
		if all[i], err = address(strings.TrimSpace(b)); err != nil {
			return nil, err
		}
	}
	return all, nil
}

func address(b string) (string, error) {
	if ip, err := netip.ParseAddr(strings.TrimSuffix(strings.TrimPrefix(b, "["), "]")); err == nil &&
		strings.HasPrefix(b, "[") == strings.HasSuffix(b, "]") {
		return net.JoinHostPort(ip.String(), DefaultPort), nil
	}
	host, port, err := net.SplitHostPort(b)
	if err != nil && !strings.Contains(b, ":") {
		host, port, err = b, DefaultPort, nil
	}
	if n, notNumber := strconv.ParseUint(port, 10, 16); err != nil || host == "" || strings.ContainsAny(host, " \t/") ||
		notNumber != nil || n == 0 {
		return "", fmt.Errorf("%q: want HOST or HOST:PORT", b)
	}
	return net.JoinHostPort(host, port), nil
}

package command

// HelpLines describes the flags that secure connections to brokers.
func (Security) HelpLines() map[string]string {
	return map[string]string{
		"tls":                "Connect by TLS; the other flags of TLS imply it.",
		"tls-ca":             "Authorities (PEM) that sign the brokers' certificates; default: the system's.",
		"tls-cert":           "Client certificate (PEM), together with --tls-key.",
		"tls-key":            "Private key (PEM) of --tls-cert.",
		"sasl":               "Mechanism of the login.",
		"sasl-user":          "User name of the login.",
		"sasl-password":      "Password of the login; prefer ENTROPIPE_SASL_PASSWORD, which ps does not show.",
		"sasl-password-file": "File with the password of the login, read again for every connection.",
	}
}

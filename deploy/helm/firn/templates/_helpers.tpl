{{- define "firn.name" -}}
{{- if contains .Chart.Name .Release.Name }}{{ .Release.Name | trunc 63 | trimSuffix "-" }}{{ else }}{{ printf "%s-%s" .Release.Name .Chart.Name | trunc 63 | trimSuffix "-" }}{{ end -}}
{{- end }}

{{- define "firn.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "firn.labels" -}}
{{ include "firn.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}

{{- define "firn.serviceAccount" -}}
{{ .Values.serviceAccount.name | default (ternary (include "firn.name" .) "default" .Values.serviceAccount.create) }}
{{- end }}

{{- define "firn.store" -}}
{{ .Values.store.url | default (printf "kubernetes://%s" .Release.Namespace) }}
{{- end }}

{{/* Whether node IDs are in Leases, as far as the chart knows. */}}
{{- define "firn.leases" -}}
{{- if and (not .Values.store.existingSecret) (hasPrefix "kubernetes://" (include "firn.store" .)) }}true{{ end -}}
{{- end }}

{{/* firn.yaml: the chart's own keys, and then those of .Values.config. */}}
{{- define "firn.config" -}}
{{- $own := dict "listen" "0.0.0.0:3476" }}
{{- if not .Values.store.existingSecret }}{{ $_ := set $own "store" (include "firn.store" .) }}{{ end }}
{{- if .Values.tls.existingSecret }}{{ $_ := set $own "tls" (dict "cert" "/etc/firn/tls/tls.crt" "key" "/etc/firn/tls/tls.key") }}{{ end }}
{{- if .Values.tokens.existingSecret }}{{ $_ := set $own "tokens" (printf "/etc/firn/tokens/%s" .Values.tokens.key) }}{{ end }}
{{- if and .Values.tokens.existingSecret (not .Values.tls.existingSecret) }}{{ fail "tokens.existingSecret needs tls.existingSecret: tokens would be sent in plain text" }}{{ end }}
{{- if not (and .Values.tls.existingSecret .Values.tokens.existingSecret) }}{{ $_ := set $own "insecure" true }}{{ $_ := set $own "allow-host" (list (printf "%s.%s" (include "firn.name" .) .Release.Namespace)) }}{{ end }}
{{- toYaml (mergeOverwrite $own (deepCopy .Values.config)) }}
{{- end }}

{{/* A duration of firn.yaml such as 1m30s in seconds, rounded up. */}}
{{- define "firn.seconds" -}}
{{- $text := toString . }}
{{- if not (regexMatch "^([0-9]+h)?([0-9]+m)?([0-9]+s)?([0-9]+ms)?$" $text) }}{{ fail (printf "config.drain: %q is not a duration such as 10s or 1m30s" $text) }}{{ end }}
{{- $h := regexFind "[0-9]+h" $text | trimSuffix "h" | default "0" | int }}
{{- $m := regexFind "[0-9]+m([^s]|$)" $text | regexFind "[0-9]+" | default "0" | int }}
{{- $s := regexFind "[0-9]+s" (regexReplaceAll "[0-9]+ms" $text "") | trimSuffix "s" | default "0" | int }}
{{- $ms := regexFind "[0-9]+ms" $text | trimSuffix "ms" | default "0" | int }}
{{- add (mul $h 3600) (mul $m 60) $s (div (add $ms 999) 1000) }}
{{- end }}

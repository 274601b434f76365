"""row.py NAME SET PORT [--refused] COMMAND...: runs a program that uses one client, with the port
of a proxy in front of the server at PORT, and prints the client's row of docs/resp.md.

A program prints "next ID", "three ID ID ID" and 100 times "incr ID"; "none" for a client without
a call for NEXT, and "other CALL ID" for a call that may lose digits. With --refused it must print
"error TEXT" instead."""

import re, socket, subprocess, sys, threading

name, advice, port, *command = sys.argv[1:]
refused = command[0] == "--refused"
sent, answered = [], bytearray()


def commands(data):
    """The complete commands at the beginning of data, and what follows them."""
    found = []
    while m := re.match(rb"\*(\d+)\r\n", data):
        args, rest = [], data[m.end() :]
        for _ in range(int(m[1])):
            m = re.match(rb"\$(\d+)\r\n", rest)
            if not m or len(rest) < m.end() + int(m[1]) + 2:
                return found, data
            args.append(rest[m.end() : m.end() + int(m[1])].decode(errors="replace"))
            rest = rest[m.end() + int(m[1]) + 2 :]
        found.append(args)
        data = rest
    return found, data


def forward(client):
    server = socket.create_connection(("127.0.0.1", int(port)))

    def back():
        try:
            while data := server.recv(65536):
                answered.extend(data)
                client.sendall(data)
            client.shutdown(socket.SHUT_WR)
        except OSError:
            pass

    threading.Thread(target=back, daemon=True).start()
    data, used = b"", False
    try:
        while more := client.recv(65536):
            if not used:
                found, data = commands(data + more)
                for args in found:
                    if args[0].upper() in ("NEXT", "INCR", "INCRBY"):
                        used = True
                    elif not used:
                        sent.append(args)
            server.sendall(more)
        server.shutdown(socket.SHUT_WR)
    except OSError:
        pass


def accept(listener):
    while True:
        threading.Thread(target=forward, args=(listener.accept()[0],), daemon=True).start()


def shown(args):
    words = [word.upper() for word in args]
    if words[0] == "CLIENT" and words[1] != "ID":  # other subcommands are shown alone
        words = words[1:] if words[1] == "TRACKING" else words[1:2]
    return "`" + " ".join(words[:1] if words[0] == "EVAL" else words) + "`"


def works(out):
    lines = [line.split(maxsplit=1) for line in out.splitlines()]
    kinds = {
        kind: [line[1] for line in lines if line[:1] == [kind] and line[1:]]
        for kind in ("next", "three", "incr", "other")
    }
    exact = set(re.findall(r"\d{15,}", answered.decode(errors="replace")))
    one, three = kinds["next"], " ".join(kinds["three"]).split()
    faults = []
    if ["none"] in lines:
        faults.append("has no call for `NEXT`")
    elif len(one) != 1 or not exact.issuperset(one + three):
        faults.append("`NEXT` fails")
    elif len(three) != 3:
        faults.append(f"`NEXT name 3` returns {len(three)} ID")
    if len(kinds["incr"]) != 100:
        faults.append("`INCR` fails")
    elif not exact.issuperset(kinds["incr"]):
        faults.append("rounds `INCR`")
    faults += [
        f"{call} returns another number"
        for call, n in map(str.split, kinds["other"])
        if n not in exact
    ]
    return "**" + ", ".join(faults) + "**" if faults else "yes"


with socket.create_server(("127.0.0.1", 0), backlog=200) as listener:
    threading.Thread(target=accept, args=(listener,), daemon=True).start()
    command = command[1:] if refused else command
    try:
        run = subprocess.run(
            command + [str(listener.getsockname()[1])],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=300,
        )
        out, err = run.stdout, run.stderr
    except subprocess.TimeoutExpired as e:
        out, err = (e.stdout or b"").decode(), "no end after 300 s"
first = ", ".join(dict.fromkeys(shown(a) for a in sent)) or "nothing"
if refused:
    got = "an error" if "next" not in out and "error" in out else "NOT REFUSED"
    print(f"{name}: {got}: {' '.join(out.split())[6:200]}")
else:
    verdict = works(out)
    print(f"| {name} | {first} | {verdict} | {advice} |")
    if "fails" in verdict:
        print(f"{name}: {' '.join((out + err).split())[-400:]}", file=sys.stderr)

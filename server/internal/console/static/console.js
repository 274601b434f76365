// What pages do beyond HTML: live figures, copying, local times.
"use strict";
(() => {
	const $ = (sel, at = document) => at.querySelector(sel);
	const all = (sel, at = document) => [...at.querySelectorAll(sel)];

	// enhance adds to a part of a page what needs a script.
	function enhance(at) {
		for (const b of all("[data-copy]", at)) b.hidden = false;
		for (const p of all("[data-local]", at)) localTime(p);
		for (const i of all("[data-confirm]", at)) confirmTyped(i);
	}

	// localTime shows a time in the time zone of this machine.
	function localTime(p) {
		const t = new Date(p.dataset.local);
		if (!p.dataset.local || isNaN(t)) return;
		const two = (n, w = 2) => String(n).padStart(w, "0");
		const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
		const off = -t.getTimezoneOffset(), abs = Math.abs(off);
		const text = off === 0 ? "Same in your time zone (" + zone + ")." :
			"Your local time: " + t.getFullYear() + "-" + two(t.getMonth() + 1) + "-" + two(t.getDate()) + " " + two(t.getHours()) + ":" +
			two(t.getMinutes()) + ":" + two(t.getSeconds()) + "." + two(t.getMilliseconds(), 3) + " " +
			(off < 0 ? "−" : "+") + two(Math.floor(abs / 60)) + ":" + two(abs % 60) + " (" + zone + ").";
		if (p.textContent !== text) p.textContent = text;
	}

	// confirmTyped enables a form only when the name was typed. The server checks too.
	function confirmTyped(input) {
		const button = $("button", input.form);
		const look = () => { button.disabled = input.value.trim() !== input.dataset.confirm; };
		input.addEventListener("input", look);
		look();
	}

	// copying
	async function copy(text) {
		if (navigator.clipboard) return navigator.clipboard.writeText(text);
		// Over plain HTTP from another host, browsers offer only the old API.
		const t = document.createElement("textarea");
		t.value = text;
		t.className = "sr";
		document.body.append(t);
		t.select();
		const ok = document.execCommand("copy");
		t.remove();
		if (!ok) throw new Error("not copied");
	}
	document.addEventListener("click", async (e) => {
		const b = e.target.closest?.("[data-copy]");
		if (!b) return;
		try {
			await copy(b.dataset.copy);
			b.textContent = "Copied";
			b.classList.add("done");
		} catch {
			b.textContent = "Not copied";
		}
		setTimeout(() => { b.textContent = "Copy"; b.classList.remove("done"); }, 1600);
	});

	// Enter submits a multi-line field, as it does a single-line field.
	document.addEventListener("keydown", (e) => {
		if (e.target.id === "ids" && e.key === "Enter" && !e.shiftKey && !e.isComposing) {
			e.preventDefault();
			e.target.form.requestSubmit();
		}
	});

	// A pasted ID is read at once.
	document.addEventListener("paste", (e) => {
		if (e.target.id === "ids" && e.target.value === "") setTimeout(() => e.target.form.requestSubmit());
	});

	// morph turns one part of the page into another, and leaves equal elements alone, so
	// that selections, focus and open details remain.
	function morph(a, b) {
		if (a.nodeType !== 1) {
			if (a.data !== b.data) a.data = b.data;
			return;
		}
		for (const { name } of [...a.attributes]) {
			if (!b.hasAttribute(name) && name !== "open") a.removeAttribute(name);
		}
		for (const { name, value } of b.attributes) {
			if (a.getAttribute(name) !== value && !(name === "hidden" && a.dataset.copy)) a.setAttribute(name, value);
		}
		if (a.nodeName === "INPUT" || a.dataset.copy && a.dataset.copy === b.dataset.copy) return;
		const keyed = new Map();
		for (const c of a.children) if (c.dataset.key) keyed.set(c.dataset.key, c);
		let at = a.firstChild;
		for (const nb of [...b.childNodes]) {
			const key = nb.dataset?.key;
			let m = key ? keyed.get(key) : at;
			if (m && (m.nodeType !== nb.nodeType || m.nodeName !== nb.nodeName || !key && m.dataset?.key)) m = null;
			if (!m) {
				a.insertBefore(nb, at);
				continue;
			}
			if (m === at) at = at.nextSibling;
			else a.insertBefore(m, at);
			morph(m, nb);
		}
		while (at) {
			const next = at.nextSibling;
			at.remove();
			at = next;
		}
	}

	// A live page requests itself regularly, and takes over what has changed.
	const live = $("#live"), view = $("#view"), lost = $("#lost");
	if (live && view) {
		let timer, request, isLost = false;
		const say = (text, on) => {
			if (live.textContent !== text) live.textContent = text;
			live.classList.toggle("on", on);
			live.classList.toggle("off", !on);
			lost.hidden = on;
			document.body.classList.toggle("lost", !on);
			isLost = !on;
		};
		const end = () => {
			clearTimeout(timer);
			request?.abort();
		};
		const update = async () => {
			end();
			const mine = request = new AbortController();
			try {
				const answer = await fetch(location.href, { headers: { Accept: "text/html" }, signal: AbortSignal.any([mine.signal, AbortSignal.timeout(8000)]) });
				const page = new DOMParser().parseFromString(await answer.text(), "text/html");
				const next = $("#view", page);
				if (!next && answer.status < 500) return location.reload(); // to sign in, or the page is gone
				if (!next) throw new Error("no page");
				say("Live", true);
				morph(view, next);
				enhance(view);
			} catch {
				if (mine.signal.aborted) return;
				if (!isLost) {
					lost.textContent = "The connection to the server was lost at " + new Date().toISOString().slice(11, 19) +
						" UTC. This page shows the state at that time. It updates as soon as the server answers.";
				}
				say("Not connected", false);
			}
			timer = setTimeout(update, live.dataset.every);
		};
		// A hidden page needs no figures.
		document.addEventListener("visibilitychange", () => document.hidden ? end() : update());
		addEventListener("pagehide", end);
		addEventListener("pageshow", (e) => { if (e.persisted) update(); });
		// The list is searched as one types; the form does the same without a script.
		let typing;
		document.addEventListener("input", (e) => {
			if (e.target.id !== "search") return;
			clearTimeout(typing);
			typing = setTimeout(() => {
				history.replaceState(null, "", "/?" + new URLSearchParams(new FormData(e.target.form)));
				update();
			}, 200);
		});
		say("Live", true);
		timer = setTimeout(update, live.dataset.every);
	}

	enhance(document);
})();

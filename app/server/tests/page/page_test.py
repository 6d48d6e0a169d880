"""Tests of the web page in headless Chromium, against a server that runs.

    pip install playwright
    python3 page_test.py http://127.0.0.1:8080 [--chromium /usr/bin/chromium] [--screenshots DIR]

The server needs a model for each of asr, tts, sep and vad; what is asserted about their results holds
for tests/speech/jfk.flac. With --fake the server is fake_server.py, whose results are made up.
"""

import argparse
import base64
import json
import re
import subprocess
import sys
import tempfile
import traceback
import wave
from pathlib import Path

from playwright.sync_api import sync_playwright

ROOT = Path(__file__).resolve().parents[4]
SPEECH = ROOT / "tests" / "speech" / "jfk.flac"
WORDS = "ask not what your country can do for you"
PATIENCE = 180_000
PANELS = ["transcribe", "speak", "separate", "activity"]
BEGINNINGS = {"wav": b"RIFF", "flac": b"fLaC", "opus": b"OggS"}

# Notes every sound that the page sends to the sound card.
LISTEN = """
window.heard = [];
const start = AudioBufferSourceNode.prototype.start;
AudioBufferSourceNode.prototype.start = function (when, offset) {
  const samples = this.buffer.getChannelData(0);
  const sum = samples.reduce((all, one) => all + one * one, 0);
  heard.push({ seconds: this.buffer.duration, rms: Math.sqrt(sum / samples.length), when, context: this.context });
  return start.call(this, when, offset);
};
"""


def plain(text):
    return re.sub(r"[^a-z ]", "", text.lower())


def until(page, expression):
    """Waits until JavaScript is true; wait_for_function needs eval, which the page's policy forbids."""
    for _ in range(PATIENCE // 50):
        if page.evaluate(f"!!({expression})"):
            return
        page.wait_for_timeout(50)
    raise AssertionError(f"never true: {expression}")


class Tests:
    def __init__(self, playwright, options):
        self.options = options
        self.work = Path(tempfile.mkdtemp(prefix="page-test-"))
        self.launch = lambda *more: playwright.chromium.launch(
            executable_path=options.chromium,
            args=["--no-sandbox", "--autoplay-policy=no-user-gesture-required", *more],
        )
        self.browser = self.launch()

    def open(self, browser=None, **context):
        context.setdefault("viewport", {"width": 1100, "height": 860})
        page = (browser or self.browser).new_context(accept_downloads=True, **context).new_page()
        page.set_default_timeout(PATIENCE)
        self.complaints = []
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("console", lambda m: m.type == "error" and self.complaints.append(m.text))
        page.add_init_script(LISTEN)
        page.goto(self.options.url)
        page.wait_for_selector("#strip b")
        return page

    def done(self, page, allowed=""):
        found = [line for line in self.complaints if not (allowed and allowed in line)]
        page.context.close()
        assert not found, f"the browser complained: {found}"

    def picture(self, page, name):
        if self.options.screenshots:
            page.mouse.move(0, 0)
            page.evaluate("document.activeElement.blur()")
            page.wait_for_timeout(400)
            folder = Path(self.options.screenshots)
            folder.mkdir(parents=True, exist_ok=True)
            page.screenshot(path=folder / f"{name}.png", full_page=True)

    def run_curl(self, page, panel, file=SPEECH):
        """Runs the command that the panel shows in a shell, where the file lies."""
        summary = page.locator(f"#panel-{panel} details.curl summary")
        summary.click()
        command = page.locator(f"#panel-{panel} details.curl pre").inner_text()
        summary.click()
        folder = Path(tempfile.mkdtemp(dir=self.work))
        if file:
            (folder / file.name).write_bytes(file.read_bytes())
        ran = subprocess.run(["bash", "-c", f"{command} -sS --fail"], cwd=folder, capture_output=True, timeout=170)
        assert ran.returncode == 0, ran.stderr.decode() + command
        return ran.stdout, folder

    def downloaded(self, page, selector):
        with page.expect_download() as download:
            page.click(selector)
        return download.value.suggested_filename, Path(download.value.path()).read_bytes()

    # Each test below is one panel or one promise of the page.

    def test_transcribe_a_file(self):
        page = self.open()
        panel = "#panel-transcribe"
        page.set_input_files(f"{panel} input[type=file]", SPEECH)
        page.click(f"{panel} button.primary >> text=/^Transcribe$/")
        page.wait_for_selector(f"{panel} .facts")
        text = page.locator(f"{panel} .text").inner_text()
        assert WORDS in plain(text), text
        words = page.locator(f"{panel} .word")
        assert words.count() >= 20, words.count()

        # A word that is clicked is played and marked.
        word = words.nth(10)
        start, end = word.evaluate("word => [word.start, word.end]")
        assert 2 < start < end < 11.5, (start, end)
        word.click()
        page.wait_for_selector(f"{panel} .player button[aria-label=Pause]")
        page.wait_for_selector(f"{panel} .word.now")
        page.click(f"{panel} .player button[aria-label=Pause]")
        now = page.locator(f"{panel} .player canvas").get_attribute("aria-valuenow")
        assert start - 0.1 <= float(now) <= start + 4, (now, start)
        # The keyboard walks from word to word.
        words.nth(0).focus()
        page.keyboard.press("ArrowRight")
        assert page.evaluate("document.activeElement.start") == words.nth(1).evaluate("w => w.start")
        page.keyboard.press("Enter")
        page.wait_for_selector(f"{panel} .player button[aria-label=Pause]")
        page.click(f"{panel} .player button[aria-label=Pause]")
        page.locator(f"{panel} .player canvas").focus()
        page.keyboard.press("Home")
        assert page.locator(f"{panel} .player canvas").get_attribute("aria-valuenow") == "0.0"

        files = {}
        for name in ["txt", "srt", "vtt", "json"]:
            file, data = self.downloaded(page, f"{panel} .chip >> text=/^{name}$/")
            assert file == f"jfk.{name}", file
            files[name] = data.decode()
        assert files["txt"].strip() == text.strip()
        assert re.match(r"1\n00:00:0\d,\d{3} --> 00:00:\d\d,\d{3}\n\S", files["srt"]), files["srt"]
        assert re.match(r"WEBVTT\n\n00:00:0\d\.\d{3} --> ", files["vtt"]), files["vtt"]
        whole = json.loads(files["json"])
        assert len(whole["words"]) >= 20 and whole["language"] == "english", files["json"]
        assert abs(whole["duration"] - 11.0) < 0.1, whole["duration"]

        answer, _ = self.run_curl(page, "transcribe")
        lines = [line[5:] for line in answer.decode().splitlines() if line.startswith("data:")]
        last = json.loads([line for line in lines if "transcript.text.done" in line][-1])
        assert last["text"] == whole["text"]
        self.picture(page, "transcribe-light")
        self.done(page)

    def test_a_dropped_file_is_taken(self):
        page = self.open()
        data = base64.b64encode(SPEECH.read_bytes()).decode()
        page.evaluate(
            """async (data) => {
              const bytes = Uint8Array.from(atob(data), (c) => c.charCodeAt(0));
              const dropped = new DataTransfer();
              dropped.items.add(new File([bytes], 'dropped <b>.flac', { type: 'audio/flac' }));
              const drop = document.querySelector('#panel-activity .drop');
              drop.dispatchEvent(new DragEvent('drop', { dataTransfer: dropped, bubbles: true, cancelable: true }));
            }""",
            data,
        )
        page.click("#tab-activity")
        name = page.locator("#panel-activity .file b").first
        assert name.inner_text() == "dropped <b>.flac"
        self.done(page)

    def test_speak(self):
        page = self.open()
        panel = "#panel-speak"
        page.click("#tab-speak")
        until(page, f"document.querySelectorAll('{panel} select')[1].options.length > 1")
        page.fill(f"{panel} textarea", "The tide was out. A single gull walked along the wall.")
        page.locator(f"{panel} textarea").press("Control+Enter")
        page.wait_for_selector(f"{panel} .facts")
        until(page, "heard.length > 0 && heard[0].context.currentTime > heard[0].when")
        page.wait_for_selector(f"{panel} .player:visible")
        heard = page.evaluate("heard.map(({ seconds, rms }) => ({ seconds, rms }))")
        seconds = sum(part["seconds"] for part in heard)
        assert 1.5 < seconds < 20, seconds
        assert max(part["rms"] for part in heard) > 0.01, heard
        facts = dict(zip(page.locator(f"{panel} dt").all_inner_texts(), page.locator(f"{panel} dd").all_inner_texts()))
        assert re.fullmatch(r"\d+ ms", facts["First audio"]), facts
        assert float(facts["Real-time factor"]) > 0, facts
        assert abs(float(facts["Length"].removesuffix(" s")) - seconds) < 0.1, (facts, seconds)

        _, wav = self.downloaded(page, f"{panel} .chip >> text=/^wav$/")
        assert abs((len(wav) - 44) / 48_000 - seconds) < 0.05, len(wav)
        _, pcm = self.downloaded(page, f"{panel} .chip >> text=/^pcm$/")
        assert wav[44:] == pcm
        if not self.options.fake:
            for name in ["mp3", "opus", "flac"]:
                file, data = self.downloaded(page, f"{panel} .chip >> text=/^{name}$/")
                assert file == f"speech.{name}" and len(data) > 2000, (file, len(data))
                first = BEGINNINGS.get(name)
                assert data.startswith(first) if first else data[:3] == b"ID3" or data[0] == 0xFF, data[:8]
                command = page.locator(f"{panel} details.curl pre").text_content()
                assert f'"response_format":"{name}"' in command, command
        _, folder = self.run_curl(page, "speak", None)
        assert (folder / ("speech.pcm" if self.options.fake else "speech.flac")).stat().st_size > 2000
        self.picture(page, "speak-light")
        self.done(page)

    def test_speech_can_be_stopped(self):
        page = self.open()
        panel = "#panel-speak"
        page.click("#tab-speak")
        page.fill(f"{panel} textarea", "One sentence follows another, and then another comes. " * 40)
        page.click(f"{panel} button.primary >> text=Speak")
        until(page, "heard.length > 0")
        page.click(f"{panel} button >> text=Stop")
        page.wait_for_selector(f"{panel} .player:visible")
        count = page.evaluate("heard.length")
        page.wait_for_timeout(1500)
        assert page.evaluate("heard.length") == count
        assert page.locator(f"{panel} [role=alert]").inner_text() == ""
        assert page.locator(f"{panel} button.primary >> text=Speak").is_enabled()
        self.done(page)

    def test_separate(self):
        page = self.open()
        panel = "#panel-separate"
        page.click("#tab-separate")
        page.set_input_files(f"{panel} input[type=file]", SPEECH)
        page.click(f"{panel} button.primary >> text=/^Separate$/")
        page.wait_for_selector(f"{panel} .track")
        names = page.locator(f"{panel} .track .name").all_inner_texts()
        assert "vocals" in names and len(names) >= 2, names
        # Solo makes the others silent, and both together are heard again.
        page.click(f"{panel} .track >> nth=0 >> button[aria-label^=Solo]")
        silent = page.locator(f"{panel} .track").evaluate_all("rows => rows.map((r) => r.classList.contains('silent'))")
        assert silent == [False] + [True] * (len(names) - 1), silent
        page.click(f"{panel} .track >> nth=0 >> button[aria-label^=Solo]")
        page.click(f"{panel} .track >> nth=1 >> button[aria-label^=Mute]")
        assert page.locator(f"{panel} .track.silent").count() == 1
        page.click(f"{panel} button[aria-label='Play all']")
        until(page, "document.querySelector('#panel-separate .track canvas').getAttribute('aria-valuenow') > 0.3")
        heard = page.evaluate("heard.map(({ when, seconds }) => [when, seconds])")
        assert len(heard) == len(names) and len({when for when, _ in heard}) == 1, heard
        page.click(f"{panel} button[aria-label='Pause all']")
        file, data = self.downloaded(page, f"{panel} .track >> nth=0 >> button[aria-label^=Download]")
        assert data.startswith(b"RIFF") and file.endswith(".wav"), file
        _, archive = self.downloaded(page, f"{panel} .chip")
        _, folder = self.run_curl(page, "separate")
        assert abs((folder / "stems.zip").stat().st_size - len(archive)) < 100
        if not self.options.fake:
            assert abs(heard[0][1] - 11.0) < 0.05, heard
        self.picture(page, "separate-light")
        self.done(page)

    def test_voice_activity(self):
        page = self.open(color_scheme="dark")
        panel = "#panel-activity"
        page.click("#tab-activity")
        page.set_input_files(f"{panel} input[type=file]", SPEECH)
        page.click(f"{panel} button.primary >> text=Find speech")
        page.wait_for_selector(f"{panel} .stretches li")
        shown = page.locator(f"{panel} .stretches li").all_inner_texts()
        file, data = self.downloaded(page, f"{panel} .chip >> text=/^json$/")
        activity = json.loads(data)
        assert file == "jfk speech.json" and len(activity["segments"]) == len(shown), shown
        speech = sum(one["end"] - one["start"] for one in activity["segments"])
        assert 5 < speech < 11 and len(activity["probabilities"]) > 300, activity["segments"]
        page.click(f"{panel} .stretches button >> nth=0")
        page.wait_for_selector(f"{panel} .player button[aria-label=Pause]")
        page.click(f"{panel} .player button[aria-label=Pause]")
        answer, _ = self.run_curl(page, "activity")
        assert json.loads(answer)["segments"] == activity["segments"]
        self.picture(page, "activity-dark")
        self.done(page)

    def test_microphone(self):
        page = self.open()
        data = base64.b64encode(SPEECH.read_bytes()).decode()
        samples = page.evaluate(
            """async (data) => {
              const bytes = Uint8Array.from(atob(data), (c) => c.charCodeAt(0));
              const sound = await new OfflineAudioContext(1, 1, 48000).decodeAudioData(bytes.buffer);
              const out = new Uint8Array(Int16Array.from(sound.getChannelData(0), (s) => s * 32767).buffer);
              let text = '';
              for (let i = 0; i < out.length; i += 8192) text += String.fromCharCode(...out.subarray(i, i + 8192));
              return btoa(text);
            }""",
            data,
        )
        page.context.close()
        recording = self.work / "microphone.wav"
        with wave.open(str(recording), "wb") as file:
            file.setnchannels(1)
            file.setsampwidth(2)
            file.setframerate(48_000)
            file.writeframes(base64.b64decode(samples))
        browser = self.launch(
            "--use-fake-ui-for-media-stream",
            "--use-fake-device-for-media-stream",
            f"--use-file-for-fake-audio-capture={recording}%noloop",
        )
        page = self.open(browser)
        page.context.grant_permissions(["microphone"])
        panel = "#panel-transcribe"
        page.click(f"{panel} button >> text=Record")
        until(page, "Number(document.querySelector('#panel-transcribe .meter').getAttribute('aria-valuenow')) > 5")
        page.wait_for_timeout(5_000)
        self.picture(page, "record-light")
        page.wait_for_timeout(7_500)
        page.click(f"{panel} button[aria-label='Stop recording']")
        page.wait_for_selector(f"{panel} .player:visible")
        page.click(f"{panel} button.primary >> text=/^Transcribe$/")
        page.wait_for_selector(f"{panel} .facts")
        text = page.locator(f"{panel} .text").inner_text()
        assert "your country" in plain(text), text
        self.done(page)
        browser.close()

    def test_faults_are_said_in_words(self):
        page = self.open()
        if self.options.fake:
            page.click("#tab-speak")
            page.wait_for_timeout(500)
            page.fill("#panel-speak textarea", "fail")
            page.click("#panel-speak button.primary >> text=Speak")
            problem = page.locator("#panel-speak .problem")
        else:
            page.set_input_files("#panel-transcribe input[type=file]", files=[{"name": "notes.flac", "mimeType": "audio/flac", "buffer": b"no sound in here" * 40}])
            page.click("#panel-transcribe button.primary >> text=/^Transcribe$/")
            problem = page.locator("#panel-transcribe .problem")
        problem.wait_for()
        words = problem.inner_text()
        assert re.search(r"Request id \S{4,}", words) and "undefined" not in words and "{" not in words, words
        page.context.set_offline(True)
        page.wait_for_selector("#strip .dot.lost")
        assert "does not answer" in page.locator("#strip").inner_text()
        self.done(page, allowed="Failed to load resource")

    def test_keys_stay_in_the_tab(self):
        page = self.open()
        seen = []
        page.on("request", lambda request: seen.append(request.headers.get("authorization")))
        page.click("#key-button")
        page.fill("#key-field", "sk-secret")
        page.keyboard.press("Enter")
        page.wait_for_timeout(300)
        assert "Bearer sk-secret" in seen, seen
        assert page.evaluate("[sessionStorage.length, JSON.stringify(localStorage).includes('sk-')]") == [1, False]
        page.set_input_files("#panel-activity input[type=file]", SPEECH)
        page.click("#tab-activity")
        page.click("#panel-activity button.primary >> text=Find speech")
        page.wait_for_selector("#panel-activity .stretches li")
        command = page.locator("#panel-activity details.curl pre").text_content()
        assert "$AUDIOCPP_API_KEY" in command and "sk-secret" not in command, command
        page.click("#key-button")
        page.click("text=Forget")
        assert page.evaluate("sessionStorage.length") == 0
        self.done(page)

    def test_keyboard_and_names(self):
        page = self.open()
        page.locator("#tab-transcribe").focus()
        for name in ["speak", "separate", "activity", "transcribe"]:
            page.keyboard.press("ArrowRight")
            assert page.evaluate("document.activeElement.id") == f"tab-{name}"
            assert page.locator(f"#panel-{name}").is_visible() and page.url.endswith(f"#{name}")
        nameless = page.evaluate(
            """[...document.querySelectorAll('button, input:not([type=file]), select, textarea, canvas')].filter((one) =>
              !one.getAttribute('aria-label') && !one.labels?.length && !one.textContent.trim()).map((one) => one.outerHTML)"""
        )
        assert nameless == [], nameless
        page.click("#theme-button")
        first = page.evaluate("document.documentElement.dataset.theme")
        page.reload()
        assert page.evaluate("document.documentElement.dataset.theme") == first == "dark"
        self.done(page)

    def test_a_task_without_models_says_how_to_get_one(self):
        page = self.open()
        status = {"version": "0", "device": "cpu", "running": 0, "queued": 0, "models": []}
        page.route("**/v1/status", lambda route: route.fulfill(json=status))
        page.reload()
        for name in PANELS:
            page.click(f"#tab-{name}")
            command = page.locator(f"#panel-{name} pre:visible").inner_text()
            assert re.match(r"audiocpp_cli models pull [\w.-]+", command), command
        self.picture(page, "missing-light")
        self.done(page)

    def test_phone(self):
        page = self.open(viewport={"width": 360, "height": 740}, has_touch=True, is_mobile=True)
        for name in PANELS:
            page.click(f"#tab-{name}")
            if name != "speak":
                page.set_input_files(f"#panel-{name} input[type=file]", SPEECH)
            wide = page.evaluate("[document.documentElement.scrollWidth, visualViewport.scale]")
            assert wide == [360, 1], (name, wide)
        page.click("#tab-transcribe")
        page.click("#panel-transcribe button.primary >> text=/^Transcribe$/")
        page.wait_for_selector("#panel-transcribe .facts")
        page.click("#panel-transcribe details.curl summary")
        assert page.evaluate("document.documentElement.scrollWidth") == 360
        page.click("#panel-transcribe details.curl summary")
        self.picture(page, "phone-light")
        self.done(page)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("url")
    parser.add_argument("--chromium", default="/usr/bin/chromium")
    parser.add_argument("--screenshots", help="folder for pictures of the panels")
    parser.add_argument("--fake", action="store_true", help="the server is fake_server.py")
    parser.add_argument("--only", default="", help="run tests with this in their names")
    options = parser.parse_args()
    failed = 0
    with sync_playwright() as playwright:
        tests = Tests(playwright, options)
        for name in [name for name in dir(Tests) if name.startswith("test_") and options.only in name]:
            try:
                getattr(tests, name)()
                print(f"ok    {name}", flush=True)
            except Exception:
                failed += 1
                print(f"FAIL  {name}\n{traceback.format_exc()}", flush=True)
        tests.browser.close()
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()

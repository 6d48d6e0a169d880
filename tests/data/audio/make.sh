#!/bin/sh
# Makes the clips of this folder again. Wants ffmpeg with libmp3lame, libvorbis, libopus, libx264.
# Every clip is 0.3 s: left a sweep from 200 Hz to 3 kHz, right a 440 Hz tone at half its level.
set -e
cd "$(dirname "$0")"
sweep='0.5*sin(2*PI*(200*t+4666*t*t))|0.25*sin(2*PI*440*t)'
quiet="-hide_banner -loglevel error -y -bitexact"
clip() { # rate, then ffmpeg's output options and the file
    rate=$1
    shift
    ffmpeg $quiet -f lavfi -i "aevalsrc=$sweep:s=$rate:d=0.3" -map_metadata -1 -fflags +bitexact \
        -flags:a +bitexact "$@"
}
film() { # video in, then the rest
    ffmpeg $quiet -f lavfi -i "color=c=gray:s=16x16:r=10:d=0.3" \
        -f lavfi -i "aevalsrc=$sweep:s=44100:d=0.3" -map_metadata -1 -fflags +bitexact \
        -flags:a +bitexact -flags:v +bitexact "$@"
}
clip 44100 -c:a pcm_mulaw mulaw.wav
clip 44100 -c:a pcm_alaw alaw.wav
clip 44100 -c:a adpcm_ms adpcm_ms.wav
clip 44100 -c:a adpcm_ima_wav adpcm_ima.wav
clip 44100 -c:a libmp3lame -b:a 64k mp3_in.wav
clip 44100 -c:a flac clip.flac
clip 44100 -c:a libmp3lame -b:a 64k cbr.mp3
clip 44100 -c:a libmp3lame -q:a 5 vbr.mp3
clip 44100 -c:a mp2 -b:a 96k clip.mp2
clip 44100 -c:a libvorbis -q:a 2 -page_duration 20000 vorbis.ogg
clip 48000 -c:a libopus -b:a 96k -page_duration 20000 opus.ogg
clip 48000 -c:a libopus -b:a 96k opus.webm
clip 48000 -c:a libopus -b:a 96k -f webm pipe:1 | cat > opus_live.webm
clip 48000 -c:a libopus -b:a 96k -strict -2 opus.mp4
clip 44100 -c:a libvorbis -q:a 2 vorbis.webm
clip 44100 -c:a flac flac.mkv
clip 44100 -c:a aac -b:a 128k moov_last.m4a
clip 44100 -c:a aac -b:a 128k -movflags +faststart moov_first.m4a
clip 44100 -c:a aac -b:a 128k -movflags +frag_keyframe+empty_moov+delay_moov fragmented.m4a
clip 44100 -c:a aac -b:a 128k adts.aac
clip 44100 -c:a alac alac.m4a
clip 44100 -c:a pcm_s16be clip.aiff
clip 44100 -c:a pcm_s16le clip.caf
clip 44100 -c:a alac alac.caf
film -c:v libx264 -c:a aac -b:a 128k -shortest film.mp4
film -c:v libvpx -b:v 20k -c:a libvorbis -q:a 2 -shortest film.webm
film -map 0 -c:v libx264 silent.mp4
# An MP3 with cover art in front of the sound.
ffmpeg $quiet -f lavfi -i "color=c=red:s=16x16" -frames:v 1 cover.png
ffmpeg $quiet -i cbr.mp3 -i cover.png -map 0 -map 1 -c copy -id3v2_version 3 \
    -disposition:v attached_pic cover.mp3
rm cover.png

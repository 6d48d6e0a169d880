<#
.SYNOPSIS
    Installs audiocpp on Windows from a release folder: the programs, and the GPU packs that fit.
.DESCRIPTION
    Installs no driver and needs no administrator. AUDIOCPP_DOWNLOAD_BASE names the release, a
    folder or a URL, with the archives, PACKS (a line each: name backend archive targets) and
    SHA256SUMS, as `cargo xtask pack` makes it with --release.
.EXAMPLE
    $env:AUDIOCPP_DOWNLOAD_BASE = 'D:\release'; powershell -ExecutionPolicy Bypass -File scripts\install.ps1
#>
[CmdletBinding()]
param(
    # Where bin\ and lib\audiocpp\ go.
    [string] $Prefix = (Join-Path $env:LOCALAPPDATA 'audiocpp'),
    # Packs to install; none; or auto.
    [string[]] $Packs = @('auto'),
    # Say what would be installed.
    [switch] $DryRun
)

Set-StrictMode -Version Latest
$ErrorActionPreference = 'Stop'

function Stop-Install([int] $Code, [string] $Message) {
    Write-Error "install.ps1: $Message" -ErrorAction Continue
    exit $Code
}

$base = $env:AUDIOCPP_DOWNLOAD_BASE
if (-not $base) { Stop-Install 2 'AUDIOCPP_DOWNLOAD_BASE names no release: a folder or a URL.' }
$work = Join-Path ([IO.Path]::GetTempPath()) ([Guid]::NewGuid().ToString())
New-Item -ItemType Directory -Path $work | Out-Null

function Get-ReleaseFile([string] $Name) {
    $to = Join-Path $work $Name
    if ($base -match '^https?://') {
        Invoke-WebRequest -UseBasicParsing -Uri "$base/$Name" -OutFile $to
    }
    else {
        $from = Join-Path $base $Name
        if (-not (Test-Path -LiteralPath $from)) { Stop-Install 3 "$base has no $Name." }
        Copy-Item -LiteralPath $from -Destination $to
    }
    return $to
}

# The number at the end of a pack's name: 7 of rocm_v7.
function Get-PackMajor([string] $Name) {
    if ($Name -match '_v([0-9]+)$') { return [int] $Matches[1] }
    return 0
}

# AMD's HIP runtime comes with the driver, as amdhip64_<major>.dll.
function Test-HipRuntime([int] $Major) {
    $system = Join-Path $env:SystemRoot 'System32'
    return Test-Path -LiteralPath (Join-Path $system "amdhip64_$Major.dll")
}

try {
    $all = @(Get-Content -LiteralPath (Get-ReleaseFile 'PACKS') | Where-Object { $_.Trim() } | ForEach-Object {
            $words = @($_ -split '\s+')
            [pscustomobject] @{ Name = $words[0]; Backend = $words[1]; Archive = $words[2]; Major = (Get-PackMajor $words[0]) }
        })
    $sums = @{}
    foreach ($line in Get-Content -LiteralPath (Get-ReleaseFile 'SHA256SUMS')) {
        $words = @($line -split '\s+')
        if ($words.Count -ge 2) { $sums[$words[1]] = $words[0] }
    }
    $newest = @($all | Sort-Object -Property Major -Descending)
    $cpu = @($newest | Where-Object { $_.Backend -eq 'cpu' })
    if ($cpu.Count -eq 0) { Stop-Install 3 'the release has no base (a pack of backend cpu).' }
    $chosen = @($cpu[0])

    if ($Packs.Count -eq 1 -and $Packs[0] -eq 'auto') {
        $adapters = @(Get-CimInstance -ClassName Win32_VideoController)
        $working = @($adapters | Where-Object { $_.ConfigManagerErrorCode -eq 0 })
        $amd = @($working | Where-Object { $_.PNPDeviceID -like 'PCI\VEN_1002*' })
        $nvidia = @($working | Where-Object { $_.PNPDeviceID -like 'PCI\VEN_10DE*' })
        if ($amd.Count -gt 0) {
            # Windows does not say a GPU's instruction set; the program compares it with the pack's.
            $hip = @($newest | Where-Object { $_.Backend -eq 'hip' -and (Test-HipRuntime $_.Major) })
            if ($hip.Count -gt 0) {
                Write-Output "AMD GPU $($amd[0].Name): pack $($hip[0].Name)"
                $chosen += $hip[0]
            }
            else {
                Write-Output "AMD GPU $($amd[0].Name): no HIP runtime of a pack of this release (amdhip64_<n>.dll). Install AMD's driver with HIP and run this again; until then Vulkan or the CPU is used."
            }
        }
        if ($nvidia.Count -gt 0) {
            $cuda = @($newest | Where-Object { $_.Backend -eq 'cuda' })
            if ($cuda.Count -gt 0) {
                Write-Output "NVIDIA GPU $($nvidia[0].Name): pack $($cuda[0].Name)"
                $chosen += $cuda[0]
            }
        }
        if ($chosen.Count -eq 1 -and $working.Count -gt 0) {
            $vulkan = @($newest | Where-Object { $_.Backend -eq 'vulkan' })
            $loader = Join-Path (Join-Path $env:SystemRoot 'System32') 'vulkan-1.dll'
            if ($vulkan.Count -gt 0 -and (Test-Path -LiteralPath $loader)) {
                Write-Output "GPU through Vulkan: pack $($vulkan[0].Name)"
                $chosen += $vulkan[0]
            }
        }
    }
    elseif (-not ($Packs.Count -eq 1 -and $Packs[0] -eq 'none')) {
        foreach ($name in $Packs) {
            $found = @($all | Where-Object { $_.Name -eq $name })
            if ($found.Count -eq 0) { Stop-Install 2 "the release has no pack $name; it has: $(($all | ForEach-Object { $_.Name }) -join ' ')" }
            if ($found[0].Name -ne $cpu[0].Name) { $chosen += $found[0] }
        }
    }

    Write-Output "install: $(($chosen | ForEach-Object { $_.Name }) -join ' ') -> $Prefix"
    if ($DryRun) { exit 0 }

    # Everything beside its place first, then renamed into it.
    $lib = Join-Path $Prefix 'lib'
    $bin = Join-Path $Prefix 'bin'
    New-Item -ItemType Directory -Force -Path $lib, $bin | Out-Null
    $stage = Join-Path $Prefix ('.stage-' + [Guid]::NewGuid().ToString())
    New-Item -ItemType Directory -Path $stage | Out-Null
    try {
        foreach ($pack in $chosen) {
            $archive = Get-ReleaseFile $pack.Archive
            $sum = (Get-FileHash -Algorithm SHA256 -LiteralPath $archive).Hash
            if ($sums[$pack.Archive] -ne $sum) { Stop-Install 4 "$($pack.Archive) does not have the checksum of SHA256SUMS; nothing was installed." }
            & tar.exe -xzf $archive -C $stage
            if ($LASTEXITCODE -ne 0) { Stop-Install 4 "$($pack.Archive) cannot be unpacked; nothing was installed." }
        }
        $place = Join-Path $lib 'audiocpp'
        if (Test-Path -LiteralPath $place) { Move-Item -LiteralPath $place -Destination (Join-Path $stage 'old') }
        Move-Item -LiteralPath (Join-Path (Join-Path $stage 'lib') 'audiocpp') -Destination $place
        $programs = Join-Path $stage 'bin'
        if (Test-Path -LiteralPath $programs) {
            Get-ChildItem -LiteralPath $programs -File | ForEach-Object { Move-Item -Force -LiteralPath $_.FullName -Destination $bin }
        }
    }
    finally {
        Remove-Item -Recurse -Force -LiteralPath $stage
    }
    Write-Output "installed. Programs are in $bin; audiocpp_cli devices lists what they can use."
}
finally {
    Remove-Item -Recurse -Force -LiteralPath $work
}

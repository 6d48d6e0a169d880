<#
.SYNOPSIS
    Builds audiocpp's HIP (AMD GPU) pack on Windows.
.DESCRIPTION
    A thin front for `cargo xtask pack hip`, which finds ROCm (HIP SDK), Visual Studio, CMake and
    ninja, compiles a small program to see whether the headers of the MSVC toolset agree with HIP's
    compiler, and then builds. The same plan serves Linux. `-DryRun` shows it and does nothing.
.EXAMPLE
    powershell -ExecutionPolicy Bypass -File scripts\build_windows_hip.ps1 -GpuTargets gfx1100 -Graphs
#>
[CmdletBinding()]
param(
    # GPUs to compile for: gfx1100,gfx1151; all; auto for those of this machine.
    [string[]] $GpuTargets = @(),
    # Folder of the ROCm installation; else HIP_PATH, ROCM_PATH, else the newest under Program Files.
    [string] $RocmPath = '',
    [ValidateSet('Release', 'RelWithDebInfo', 'Debug')]
    [string] $BuildType = 'Release',
    # What to make besides the plugin.
    [ValidateSet('plugin', 'audiocpp_cli', 'audiocpp_server', 'all')]
    [string] $Target = 'plugin',
    # Compilers at once; 0 for one a processor.
    [ValidateRange(0, 1024)]
    [int] $Jobs = 0,
    # Build folder, and the folder that gets lib\audiocpp\<pack>.
    [string] $BuildDir = '',
    [string] $OutDir = '',
    # MSVC toolset, such as 14.44.
    [string] $VcVarsVer = '',
    [switch] $ConfigureOnly,
    [switch] $Clean,
    # Leave matrix products to hipBLAS (rocBLAS).
    [switch] $NoHipblasLt,
    # Quantised products through ggml's own kernels always.
    [switch] $ForceMmq,
    # The default, accepted for scripts that name it.
    [switch] $NoVmm,
    # HIP's virtual memory management; not for integrated GPUs.
    [switch] $WithVmm,
    # GPU graphs; not for integrated GPUs.
    [switch] $Graphs,
    # Programs for any x86-64 processor; for distribution.
    [switch] $NoNativeCpu,
    # Show what would be done.
    [switch] $DryRun,
    # Show it as JSON.
    [switch] $Json
)

Set-StrictMode -Version Latest
$ErrorActionPreference = 'Stop'

if ($NoVmm -and $WithVmm) {
    Write-Error '-NoVmm and -WithVmm exclude each other.' -ErrorAction Continue
    exit 2
}
$cargo = Get-Command 'cargo' -ErrorAction SilentlyContinue
if (-not $cargo) {
    Write-Error 'cargo was not found on the PATH. Install Rust from https://rustup.rs and open a new prompt.' -ErrorAction Continue
    exit 3
}

$arguments = @('xtask', 'pack', 'hip', '--build-type', $BuildType, '--target', $Target)
if ($GpuTargets.Count -gt 0) { $arguments += @('--gpu-targets', ($GpuTargets -join ';')) }
if ($RocmPath) { $arguments += @('--rocm-path', $RocmPath) }
if ($Jobs -gt 0) { $arguments += @('--jobs', "$Jobs") }
if ($BuildDir) { $arguments += @('--build-dir', $BuildDir) }
if ($OutDir) { $arguments += @('--out', $OutDir) }
if ($VcVarsVer) { $arguments += @('--vcvars-ver', $VcVarsVer) }
if ($ConfigureOnly) { $arguments += '--configure-only' }
if ($Clean) { $arguments += '--clean' }
if ($NoHipblasLt) { $arguments += '--no-hipblaslt' }
if ($ForceMmq) { $arguments += '--force-mmq' }
if ($WithVmm) { $arguments += '--with-vmm' }
if ($Graphs) { $arguments += '--graphs' }
if ($NoNativeCpu) { $arguments += '--no-native-cpu' }
if ($DryRun) { $arguments += '--dry-run' }
if ($Json) { $arguments += '--json' }

# Windows PowerShell 5 makes errors of what a program writes to its error stream; cargo reports
# progress there.
$ErrorActionPreference = 'Continue'
Push-Location (Join-Path $PSScriptRoot '..')
try {
    & $cargo.Source @arguments
    $code = $LASTEXITCODE
}
finally {
    Pop-Location
}
exit $code

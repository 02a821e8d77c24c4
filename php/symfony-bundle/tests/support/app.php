<?php

// A small application with Symfony's own profiler and the bundle, for tests: from Debian's packages, or from SYMFONY=an
// autoloader. Returns false if they are missing.

declare(strict_types=1);

use Howdah\SymfonyBundle\HowdahBundle;
use Psr\Log\NullLogger;
use Symfony\Bundle\FrameworkBundle\FrameworkBundle;
use Symfony\Bundle\FrameworkBundle\Kernel\MicroKernelTrait;
use Symfony\Bundle\TwigBundle\TwigBundle;
use Symfony\Bundle\WebProfilerBundle\WebProfilerBundle;
use Symfony\Component\DependencyInjection\Loader\Configurator\ContainerConfigurator;
use Symfony\Component\HttpFoundation\Response;
use Symfony\Component\HttpKernel\Kernel;
use Symfony\Component\Routing\Loader\Configurator\RoutingConfigurator;

error_reporting(E_ALL & ~E_DEPRECATED & ~E_USER_DEPRECATED);
set_include_path('/usr/share/php');
$bundles = '/usr/share/php/Symfony/Bundle';
$autoloaders = getenv('SYMFONY') !== false
    ? [getenv('SYMFONY')]
    : ["$bundles/FrameworkBundle/autoload.php", "$bundles/TwigBundle/autoload.php", "$bundles/WebProfilerBundle/autoload.php"];
if (array_filter($autoloaders, is_file(...)) !== $autoloaders) {
    return false;
}
array_map(static fn (string $file) => require_once $file, $autoloaders);
spl_autoload_register(static function (string $class): void {
    $prefix = 'Howdah\SymfonyBundle\\';
    $file = __DIR__ . '/../../src/' . strtr(substr($class, strlen($prefix)), '\\', '/') . '.php';
    if (str_starts_with($class, $prefix) && is_file($file)) {
        require $file;
    }
    if ($class === 'Composer\InstalledVersions' && Kernel::MAJOR_VERSION > 5) {
        require __DIR__ . '/InstalledVersions.php';
    }
});

final class App extends Kernel
{
    use MicroKernelTrait;

    public static string $top;

    public function registerBundles(): iterable
    {
        return [new FrameworkBundle(), new TwigBundle(), new WebProfilerBundle(), new HowdahBundle()];
    }

    public function getProjectDir(): string
    {
        return self::$top;
    }

    public function getCacheDir(): string
    {
        return self::$top . '/cache';
    }

    public function getLogDir(): string
    {
        return self::$top . '/log';
    }

    protected function configureContainer(ContainerConfigurator $container): void
    {
        $container->extension('framework', ['secret' => 's', 'http_method_override' => false, 'profiler' => ['enabled' => true], 'router' => ['utf8' => true]]);
        $container->extension('web_profiler', ['toolbar' => true]);
        $container->services()->set('logger', NullLogger::class);
    }

    protected function configureRoutes(RoutingConfigurator $routes): void
    {
        $routes->add('home', '/')->controller([$this, 'home']);
        $routes->add('gate', '/gate.php')->controller([$this, 'gate']);
        foreach (['profiler' => '/_profiler', 'wdt' => '/_wdt'] as $name => $prefix) {
            $file = '@WebProfilerBundle/Resources/config/routing/' . $name;
            $php = is_file($this->locateResource('@WebProfilerBundle/Resources/config/routing') . "/$name.php");
            $routes->import($file . ($php ? '.php' : '.xml'))->prefix($prefix);
        }
    }

    public function home(): Response
    {
        return new Response('<html><body>home</body></html>');
    }

    /** Responds to the readiness check of the server's tests. */
    public function gate(): Response
    {
        return new Response('ready');
    }
}

return true;

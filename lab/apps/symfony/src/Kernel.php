<?php

namespace Orders;

use Symfony\Bundle\FrameworkBundle\FrameworkBundle;
use Symfony\Bundle\FrameworkBundle\Kernel\MicroKernelTrait;
use Symfony\Bundle\TwigBundle\TwigBundle;
use Symfony\Component\DependencyInjection\Loader\Configurator\ContainerConfigurator;
use Symfony\Component\HttpKernel\Kernel as BaseKernel;
use Symfony\Component\Routing\Loader\Configurator\RoutingConfigurator;

final class Kernel extends BaseKernel
{
    use MicroKernelTrait;

    public function registerBundles(): iterable
    {
        yield new FrameworkBundle();
        yield new TwigBundle();
    }

    public function getProjectDir(): string
    {
        return \dirname(__DIR__);
    }

    public function getCacheDir(): string
    {
        return $this->getProjectDir() . '/var/cache/' . $this->environment;
    }

    public function getLogDir(): string
    {
        return $this->getProjectDir() . '/var/log';
    }

    protected function configureContainer(ContainerConfigurator $container): void
    {
        $container->extension('framework', [
            'secret' => 'only-for-measuring',
            'http_method_override' => false,
            'router' => ['utf8' => true, 'strict_requirements' => null],
            'serializer' => ['enabled' => true, 'enable_annotations' => false],
            'property_access' => true,
            'validation' => ['enabled' => true, 'enable_annotations' => false, 'static_method' => ['loadValidatorMetadata'], 'email_validation_mode' => 'html5'],
            'php_errors' => ['log' => true],
        ]);
        $container->extension('twig', ['default_path' => '%kernel.project_dir%/templates', 'strict_variables' => true]);
        foreach ([OrderController::class, ProductController::class] as $controller) {
            $container->services()->set($controller)->autowire()->public()->tag('controller.service_arguments');
        }
    }

    protected function configureRoutes(RoutingConfigurator $routes): void
    {
        // A hundred routes, as an application of some size has; the ones in use come last.
        for ($i = 1; $i <= 96; $i++) {
            $routes->add("section_$i", "/api/section$i/{id}/{what}")
                ->controller([OrderController::class, 'show'])
                ->requirements(['id' => '\d+', 'what' => '[a-z]+']);
        }
        $routes->add('probe', '/api/probe')->controller([ProductController::class, 'probe']);
        $routes->add('product', '/api/products/{id}')->controller([ProductController::class, 'show'])->requirements(['id' => '\d+']);
        $routes->add('order', '/api/orders/{id}')->controller([OrderController::class, 'show'])->requirements(['id' => '\d+']);
        $routes->add('page', '/api/orders/{id}/page')->controller([OrderController::class, 'page'])->requirements(['id' => '\d+']);
    }
}

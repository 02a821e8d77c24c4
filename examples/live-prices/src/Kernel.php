<?php

namespace Prices;

use Symfony\Bundle\FrameworkBundle\FrameworkBundle;
use Symfony\Bundle\FrameworkBundle\Kernel\MicroKernelTrait;
use Symfony\Component\DependencyInjection\Loader\Configurator\ContainerConfigurator;
use Symfony\Component\HttpFoundation\Request;
use Symfony\Component\HttpFoundation\Response;
use Symfony\Component\HttpKernel\Kernel as BaseKernel;
use Symfony\Component\Routing\Loader\Configurator\RoutingConfigurator;

/** The whole application: a page, and the form that changes a price. */
final class Kernel extends BaseKernel
{
    use MicroKernelTrait;

    private const GOODS = ['apples', 'pears', 'plums'];

    public function page(): Response
    {
        $html = file_get_contents($this->getProjectDir() . '/src/page.html');
        [$begin, $form, $end] = explode('<!-- form -->', $html);
        $forms = array_map(static fn (string $name): string => str_replace('NAME', $name, $form), self::GOODS);

        return new Response($begin . implode('', $forms) . $end);
    }

    public function change(Request $request): Response
    {
        $name = (string) $request->request->get('name');
        $limits = ['options' => ['min_range' => 0, 'max_range' => 1000]];
        $price = filter_var($request->request->get('price'), FILTER_VALIDATE_FLOAT, $limits);
        if (!\in_array($name, self::GOODS, true) || $price === false) {
            return new Response(status: 422);
        }
        mercure_publish("prices/$name", json_encode(['name' => $name, 'price' => $price]), type: 'price');

        return new Response(status: 204);
    }

    public function registerBundles(): iterable
    {
        yield new FrameworkBundle();
    }

    public function getProjectDir(): string
    {
        return \dirname(__DIR__);
    }

    protected function configureContainer(ContainerConfigurator $container): void
    {
        $container->extension('framework', ['secret' => 'unused', 'http_method_override' => false]);
    }

    protected function configureRoutes(RoutingConfigurator $routes): void
    {
        $routes->add('page', '/')->controller([$this, 'page'])->methods(['GET']);
        $routes->add('change', '/prices')->controller([$this, 'change'])->methods(['POST']);
    }
}
